/**
 * The storage thread of a server that stores its topics in PostgreSQL. The thread decodes requests, waits for the
 * database, and encodes responses. It executes one statement at a time; batches that arrive in the meantime form the
 * next statement.
 */
import { type MessagePort, workerData } from "node:worker_threads";
import { BatonError, errorMessage } from "../../../base/errors.ts";
import { readDatabaseSafetyFacts, requireSafeDatabase } from "../../../base/postgres/database_checks.ts";
import type { DatabaseAddress } from "../../../base/postgres/database_address.ts";
import { DatabaseLane } from "../../../base/postgres/database_lane.ts";
import {
  acceptMovedDatabase,
  insertSchemaName,
  migrateDatabase,
  requireSharedStore,
} from "../../../base/postgres/database_schema.ts";
import type { PrimaryConnection } from "../../../base/postgres/primary_connection.ts";
import { StatementError } from "../../../base/postgres/statement_error.ts";
import { SharedStoreWriteTrial } from "../../../base/postgres/store_trial.ts";
import { storageRequestReceiver } from "../../../base/storage/storage_thread.ts";
import { systemClock } from "../../../base/support/clock.ts";
import { RefusedPuts } from "../limits/refused_puts.ts";
import { StoreEngine } from "../engine/store_engine.ts";
import { runSteps } from "../../../base/support/steps.ts";
import { ThreadRequests } from "../thread/thread_requests.ts";
import { TopicMaintenance } from "../engine/topic_maintenance.ts";
import type { FailedTopicCommit } from "../rows/topic_rows.ts";
import type { TopicStoreOptions } from "../limits/topic_store_limits.ts";
import type { TopicStoreCalls, TopicStoreStatistics } from "../thread/topic_store_messages.ts";
import { type ServedTopicStore, serveTopicStorePort, type TopicStorePort } from "../thread/topic_store_port.ts";
import { TopicTransfer } from "../transfer/topic_transfer.ts";
import { postgresTopicTables } from "./postgres_tables.ts";
import { PostgresTopicRows } from "./postgres_topic_rows.ts";

/** The values that the thread needs to open its store; `openPostgresStore` describes the options. */
export interface PostgresStoreOpening {
  readonly address: DatabaseAddress;
  readonly server: string;
  readonly options: TopicStoreOptions;
  readonly requiresSync: boolean;
  readonly migrates: boolean;
  readonly wasMoved: boolean;
  readonly stopsOnLoss: boolean;
}

/**
 * How long the start waits for a connection before it warns (`silentMs`), and after the warning (`connectMs`), in
 * milliseconds.
 */
const silentMs = 3_000;
const connectMs = 40_000;
/** How long a trial write waits for a connection, in milliseconds. A status page waits longer for the result. */
const trialConnectMs = 1_000;
/**
 * How long the server's health reports a refusal that only an operator can resolve, in milliseconds. A commit ends the
 * report earlier.
 */
const refusedMs = 30_000;
/** How long moved cursors for which no response waits may stay unwritten, in milliseconds. */
const settleMs = 20;
const expireMs = 1_000;

class PostgresStore implements ServedTopicStore {
  readonly #port: TopicStorePort;
  readonly #lane: DatabaseLane;
  readonly #rows: PostgresTopicRows;
  readonly #trial: SharedStoreWriteTrial;
  readonly #engine: StoreEngine;
  readonly #requests: ThreadRequests;
  readonly #transfer: TopicTransfer;
  readonly #maintenance: TopicMaintenance;
  readonly #expires: boolean;
  /** The number of topics that have or may have lost messages since the store was opened. */
  #losses = 0;
  #expiredAtMs = 0;
  #reportedAtCommit = -1;
  #refused = { why: "", untilMs: -Infinity, atCommit: 0 };
  #timer: ReturnType<typeof setTimeout> | undefined;
  #settlesAtMs = Infinity;
  storeId = "";

  constructor(
    port: TopicStorePort,
    { address, server, options, requiresSync, stopsOnLoss }: PostgresStoreOpening,
  ) {
    this.#port = port;
    const clock = systemClock();
    const onConnect = async (connection: PrimaryConnection) => {
      const { storeId } = await requireSharedStore(connection, address, postgresTopicTables);
      if (this.storeId !== "" && storeId !== this.storeId) {
        throw new BatonError("CONFIG", "The database was replaced by another one; this server must not write to it");
      }
      const warnings = requireSafeDatabase(address, await readDatabaseSafetyFacts(connection), { requiresSync });
      if (this.storeId === "") {
        for (const message of warnings) port.emit({ kind: "problem", code: "CONFIG", message });
      }
      this.storeId = storeId;
    };
    this.#lane = new DatabaseLane({
      address,
      clock,
      name: server,
      onConnect,
      warn: (message) => port.emit({ kind: "problem", code: "CONFIG", message }),
    });
    this.#rows = new PostgresTopicRows({
      lane: this.#lane,
      clock,
      server,
      stopsOnLoss,
      onLoss: (message) => {
        this.#losses++;
        port.emit({ kind: "problem", code: "BAD_DATA", message });
      },
    });
    this.#trial = new SharedStoreWriteTrial({
      table: "topic_message",
      tables: postgresTopicTables,
      row: "(topic, first, last, previous, content_sum, sum, records) VALUES (0, pg_backend_pid(), 0, 0, 0, 0, BYTES)",
      now: () => clock.now(),
      run: ({ name, text }) =>
        this.#lane.run({ name, text: insertSchemaName(text, address.schema) }, [], { connectMs: trialConnectMs }),
    });
    this.#rows.damage.onFound = (message) => port.emit({ kind: "problem", code: "IO", message });
    this.#requests = new ThreadRequests(server, (bytes, batches) => {
      port.emit({ kind: "responses", bytes, batches }, [bytes.buffer as ArrayBuffer]);
    });
    this.#engine = new StoreEngine(this.#rows, options, {
      wallClockMs: () => Date.now(),
      refusedPuts: new RefusedPuts(),
      warn: (message) => port.emit({ kind: "problem", code: "STORE_FULL", message }),
      onResponse: (response) => this.#requests.encode(response),
      onTopicLost: (topic, lost) => this.#reportLost(topic, lost),
    });
    this.#transfer = new TopicTransfer(this.#rows, this.#engine);
    this.#maintenance = new TopicMaintenance(this.#rows, this.#engine);
    this.#expires = options.retainMs !== null;
  }

  async open(): Promise<void> {
    await this.#connect();
    await this.#rows.copies.findGarbage();
    await runSteps(this.#transfer.dropIncomplete());
    this.#settleWithin(settleMs);
  }

  /**
   * Connects to the database. If the database does not respond, warns and then waits longer, because the database may
   * be starting.
   */
  async #connect(): Promise<void> {
    try {
      await this.#lane.connect({ connectMs: silentMs });
    } catch (error) {
      if (!(error instanceof StatementError) || error.code !== "UNREACHABLE") throw error;
      const message = `${error.message}; waiting up to ${connectMs / 1000} s`;
      this.#port.emit({ kind: "problem", code: "UNREACHABLE", message });
      await this.#lane.connect({ connectMs });
    }
  }

  async executeBatches(bytes: Uint8Array): Promise<void> {
    const batches = [bytes];
    this.#requests.respondedTickets = [];
    const operations = this.#requests.operations(batches, () => this.#port.nextBatch());
    await runSteps(this.#engine.execute(operations));
    this.#requests.sendResponses(batches.length);
    this.#settleWithin(settleMs);
  }

  async call(method: keyof TopicStoreCalls, values: readonly unknown[]): Promise<unknown> {
    if (method === "statistics") return await this.#statistics();
    if (method === "whyNotStored") return await this.#trial.whyNotStored() ?? this.#whyRefused();
    const owner: object = method in this.#maintenance ? this.#maintenance : this.#transfer;
    const result = (owner as Record<typeof method, (...values: readonly unknown[]) => unknown>)[method](...values);
    try {
      return await runSteps(result);
    } catch (error) {
      if (error instanceof BatonError) this.#noteRefused(error.code, error.message);
      throw error;
    }
  }

  afterCall(): void {
    this.#requests.sendLateResponses();
    this.#settleWithin(settleMs);
  }

  /** The reason why there is no connection to the database; null if there is one. */
  get whyNotConnected(): string | null {
    return this.#lane.whyNotConnected;
  }

  #noteRefused(code: string | undefined, why: string): void {
    if (code !== "CONFIG" && code !== "REFUSED" && code !== "IO") return;
    this.#refused = { why, untilMs: performance.now() + refusedMs, atCommit: this.#rows.commits };
  }

  #whyRefused(): string | null {
    const { why, untilMs, atCommit } = this.#refused;
    return performance.now() < untilMs && this.#rows.commits === atCommit ? why : null;
  }

  /** Writes changes for which no response waits, after this delay. Another commit may write them earlier. */
  #settleWithin(delayMs: number): void {
    const dueMs = performance.now() + delayMs;
    if (dueMs >= this.#settlesAtMs) return;
    clearTimeout(this.#timer);
    this.#settlesAtMs = dueMs;
    this.#timer = setTimeout(() => this.#port.run(() => this.#settle()), delayMs);
  }

  async #settle(): Promise<void> {
    this.#settlesAtMs = Infinity;
    const nowMs = performance.now();
    if (this.#expires && nowMs - this.#expiredAtMs >= expireMs) {
      this.#expiredAtMs = nowMs;
      await runSteps(this.#engine.markExpiredTopics());
    }
    const isMore = await runSteps(this.#engine.writePending());
    this.#requests.sendLateResponses();
    this.#settleWithin(isMore ? 0 : expireMs);
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await runSteps(this.#engine.writePending());
    await this.#lane.close();
  }

  async #statistics(): Promise<TopicStoreStatistics> {
    const full = this.#trial.wasFull ? await this.#trial.whyNotStored() : null;
    return {
      topics: this.#engine.topics.count,
      usedBytes: 0,
      diskShare: 0,
      full,
      commits: this.#rows.commits,
      damages: this.#rows.damage.count,
      losses: this.#losses,
      clientsShare: this.#engine.clientsShare,
      clientsForgotten: this.#engine.capacity.forgottenCount,
    };
  }

  #reportLost(topic: string, { outcome, reason, code }: FailedTopicCommit): void {
    this.#port.emit({ kind: "topic lost", topic });
    if (code === "STORE_FULL") this.#trial.noteFull();
    this.#noteRefused(code, reason);
    if (outcome === "not_owner" || this.#reportedAtCommit === this.#rows.commits) return;
    this.#reportedAtCommit = this.#rows.commits;
    this.#port.emit({ kind: "problem", code: "IO", message: `Requests are refused: ${reason}` });
  }
}

let store: PostgresStore | null = null;

serveTopicStorePort({
  requests: storageRequestReceiver(workerData as MessagePort),
  open: async (port, values) => {
    const opening = values as PostgresStoreOpening;
    const { address, migrates, wasMoved } = opening;
    if (migrates) {
      await migrateDatabase(address, { tables: postgresTopicTables, clock: systemClock(), name: "migration" });
    }
    if (wasMoved) await acceptMovedDatabase(address, { clock: systemClock(), name: "operator" });
    store = new PostgresStore(port, opening);
    await store.open();
    return store;
  },
  errorOf: (error) =>
    error instanceof BatonError ? error : new BatonError("INTERNAL", `The topic store failed: ${errorMessage(error)}`),
  isRefusal: (error) => error instanceof BatonError,
  // While other calls wait for a connection, `whyNotStored` immediately returns why there is no connection.
  answerWhileBusy: (method) => method === "whyNotStored" ? store?.whyNotConnected ?? undefined : undefined,
});
