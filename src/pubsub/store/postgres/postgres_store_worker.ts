/**
 * The storage thread of a server whose topics are in PostgreSQL: it decodes requests, encodes responses, and waits for
 * the database. It does one thing at a time; batches that arrive during a statement form the next one.
 */
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { BatonError, errorMessage } from "../../../base/errors.ts";
import { readDatabaseFacts, requireSafeDatabase } from "../../../base/postgres/database_checks.ts";
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
import { SharedStoreTrial } from "../../../base/postgres/store_trial.ts";
import { systemClock } from "../../../base/support/clock.ts";
import { RefusedPuts } from "../limits/refused_puts.ts";
import { StoreEngine } from "../engine/store_engine.ts";
import { isStoreSteps, runStoreSteps } from "../rows/store_steps.ts";
import { ThreadRequests } from "../thread/thread_requests.ts";
import { TopicMaintenance } from "../engine/topic_maintenance.ts";
import type { LostTopic } from "../rows/topic_rows.ts";
import type { TopicStoreOptions } from "../limits/topic_store_limits.ts";
import type { TopicStoreEvent, TopicStoreStatistics } from "../thread/topic_store_messages.ts";
import { TopicTransfer } from "../transfer/topic_transfer.ts";
import { postgresTopicTables } from "./postgres_tables.ts";
import { PostgresTopicRows } from "./postgres_topic_rows.ts";

/** The values that the thread needs to open its store; `openPostgresStore` describes the options. */
export interface PostgresStoreOpening {
  readonly address: DatabaseAddress;
  /** The id of this server. */
  readonly server: string;
  readonly options: TopicStoreOptions;
  readonly requiresSync: boolean;
  readonly migrates: boolean;
  readonly wasMoved: boolean;
  readonly stopsOnLoss: boolean;
}

interface StoreCall {
  readonly id: number;
  readonly method: string;
  readonly values: readonly unknown[];
}

/** How long the start waits for a connection before it warns, and after it has warned. */
const silentMs = 3_000;
const connectMs = 40_000;
/** How long a trial write waits for a connection: less than a status page waits for the result. */
const trialConnectMs = 1_000;
/**
 * How long the server's health reports a refusal that only an operator can end, unless a change is committed.
 */
const refusedMs = 30_000;
/** How long cursor moves that no response waits for may stay unwritten. */
const settleMs = 20;
/** Interval of the search for expired messages. */
const expireMs = 1_000;

const requests = workerData as MessagePort;
const replies = parentPort;
if (replies === null) throw new Error("The storage thread was started as a program");

function emit(event: TopicStoreEvent, transfer: ArrayBuffer[] = []): void {
  replies?.postMessage({ event }, transfer);
}

class PostgresStore {
  readonly #lane: DatabaseLane;
  readonly #rows: PostgresTopicRows;
  readonly #trial: SharedStoreTrial;
  readonly #engine: StoreEngine;
  readonly #requests: ThreadRequests;
  readonly #transfer: TopicTransfer;
  readonly #maintenance: TopicMaintenance;
  readonly #expires: boolean;
  /** Topics that have lost messages, or may have, since the store was opened. */
  #losses = 0;
  #expiredAtMs = 0;
  /** The number of commits when the database was last reported as failing. */
  #reportedAtCommit = -1;
  #refused = { why: "", untilMs: -Infinity, atCommit: 0 };
  storeId = "";

  constructor({ address, server, options, requiresSync, stopsOnLoss }: PostgresStoreOpening) {
    const clock = systemClock();
    const onConnect = async (connection: PrimaryConnection) => {
      const { storeId } = await requireSharedStore(connection, address, postgresTopicTables);
      if (this.storeId !== "" && storeId !== this.storeId) {
        throw new BatonError("CONFIG", "The database was replaced by another one; this server must not write to it");
      }
      const warnings = requireSafeDatabase(address, await readDatabaseFacts(connection), { requiresSync });
      if (this.storeId === "") { for (const message of warnings) emit({ kind: "problem", code: "CONFIG", message }); }
      this.storeId = storeId;
    };
    this.#lane = new DatabaseLane({
      address,
      clock,
      name: server,
      onConnect,
      warn: (message) => emit({ kind: "problem", code: "CONFIG", message }),
    });
    this.#rows = new PostgresTopicRows({
      lane: this.#lane,
      clock,
      server,
      stopsOnLoss,
      onLoss: (message) => {
        this.#losses++;
        emit({ kind: "problem", code: "BAD_DATA", message });
      },
    });
    this.#trial = new SharedStoreTrial({
      table: "topic_message",
      tables: postgresTopicTables,
      row: "(topic, first, last, previous, content_sum, sum, records) VALUES (0, pg_backend_pid(), 0, 0, 0, 0, BYTES)",
      now: () => clock.now(),
      run: ({ name, text }) =>
        this.#lane.run({ name, text: insertSchemaName(text, address.schema) }, [], { connectMs: trialConnectMs }),
    });
    this.#rows.damage.onFound = (message) => emit({ kind: "problem", code: "IO", message });
    this.#requests = new ThreadRequests(server, (bytes, batches) => {
      emit({ kind: "responses", bytes, batches }, [bytes.buffer as ArrayBuffer]);
    });
    this.#engine = new StoreEngine(this.#rows, options, {
      wallClockMs: () => Date.now(),
      refusedPuts: new RefusedPuts(),
      warn: (message) => emit({ kind: "problem", code: "STORE_FULL", message }),
      onResponse: (response) => this.#requests.encode(response),
      onTopicLost: (topic, lost) => this.#reportLost(topic, lost),
    });
    this.#transfer = new TopicTransfer(this.#rows, this.#engine);
    this.#maintenance = new TopicMaintenance(this.#rows, this.#engine);
    this.#expires = options.retainMs !== null;
  }

  async open(): Promise<string> {
    await this.#connect();
    await this.#rows.copies.findGarbage();
    await runStoreSteps(this.#transfer.dropIncomplete());
    return this.storeId;
  }

  /** Connects. Waits longer, with a warning, for a database that does not respond: it may be starting. */
  async #connect(): Promise<void> {
    try {
      await this.#lane.connect({ connectMs: silentMs });
    } catch (error) {
      if (!(error instanceof StatementError) || error.code !== "UNREACHABLE") throw error;
      const message = `${error.message}; waiting up to ${connectMs / 1000} s`;
      emit({ kind: "problem", code: "UNREACHABLE", message });
      await this.#lane.connect({ connectMs });
    }
  }

  async executeBatches(first: Uint8Array, next: () => Uint8Array | null): Promise<void> {
    const batches = [first];
    this.#requests.respondedTickets = [];
    await runStoreSteps(this.#engine.execute(this.#requests.operations(batches, next)));
    this.#requests.sendResponses(batches.length);
  }

  async call(method: string, values: readonly unknown[]): Promise<unknown> {
    if (method === "statistics") return await this.#statistics();
    if (method === "whyNotStored") return await this.#trial.whyNotStored() ?? this.#whyRefused();
    const owner: object = method in this.#maintenance ? this.#maintenance : this.#transfer;
    const result = (owner as Record<string, (...values: readonly unknown[]) => unknown>)[method]?.(...values);
    try {
      return isStoreSteps(result) ? await runStoreSteps(result) : result;
    } catch (error) {
      if (error instanceof BatonError) this.#noteRefused(error.code, error.message);
      throw error;
    } finally {
      this.#requests.sendLateResponses();
    }
  }

  /** Why the database does not accept connections, or null. */
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

  /** Writes changes that no response waits for. Returns whether there may be more to write. */
  async settle(): Promise<boolean> {
    const nowMs = performance.now();
    if (this.#expires && nowMs - this.#expiredAtMs >= expireMs) {
      this.#expiredAtMs = nowMs;
      await runStoreSteps(this.#engine.markExpiredTopics());
    }
    const isMore = await runStoreSteps(this.#engine.writePending());
    this.#requests.sendLateResponses();
    return isMore;
  }

  async close(): Promise<void> {
    await runStoreSteps(this.#engine.writePending());
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

  #reportLost(topic: string, { outcome, reason, code }: LostTopic): void {
    emit({ kind: "topic lost", topic });
    if (code === "STORE_FULL") this.#trial.noteFull();
    this.#noteRefused(code, reason);
    if (outcome === "not_owner" || this.#reportedAtCommit === this.#rows.commits) return;
    this.#reportedAtCommit = this.#rows.commits;
    emit({ kind: "problem", code: "IO", message: `Requests are refused: ${reason}` });
  }
}

/** Whether an error is a refusal: nothing has changed, or the topic is opened again. */
const isRefusal = (error: unknown) => error instanceof StatementError || error instanceof BatonError;

let store: PostgresStore | null = null;
const queue: (StoreCall | Uint8Array)[] = [];
let isRunning = false;
let timer: ReturnType<typeof setTimeout> | undefined;

async function run(call: StoreCall): Promise<unknown> {
  if (call.method === "open") {
    const opening = call.values[0] as PostgresStoreOpening;
    const { address, migrates, wasMoved } = opening;
    if (migrates) {
      await migrateDatabase(address, { tables: postgresTopicTables, clock: systemClock(), name: "migration" });
    }
    if (wasMoved) await acceptMovedDatabase(address, { clock: systemClock(), name: "operator" });
    store = new PostgresStore(opening);
    return await store.open();
  }
  if (store === null) throw new BatonError("INTERNAL", "The store is not open");
  if (call.method === "close") return await store.close();
  return await store.call(call.method, call.values);
}

async function reply(call: StoreCall): Promise<void> {
  try {
    const value = await run(call);
    const piece = (value as { readonly piece?: unknown } | null | undefined)?.piece;
    replies?.postMessage({ id: call.id, value }, piece instanceof Uint8Array ? [piece.buffer as ArrayBuffer] : []);
  } catch (error) {
    if (!isRefusal(error)) throw error;
    const { code, message } = error as BatonError;
    replies?.postMessage({ id: call.id, refusal: { code, message } });
  }
}

function nextBatch(): Uint8Array | null {
  return queue[0] instanceof Uint8Array ? queue.shift() as Uint8Array : null;
}

/** Executes what has arrived, in order. The store fails after an error that is not a refusal. */
async function runAll(): Promise<void> {
  isRunning = true;
  clearTimeout(timer);
  try {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      if (next instanceof Uint8Array) await store?.executeBatches(next, nextBatch);
      else await reply(next);
    }
    isRunning = false;
    settleLater(settleMs);
  } catch (error) {
    replies?.postMessage({ broken: { code: "INTERNAL", message: `The topic store failed: ${errorMessage(error)}` } });
  }
}

function settleLater(delayMs: number): void {
  timer = setTimeout(() => {
    if (isRunning || store === null) return;
    isRunning = true;
    store.settle().then((isMore) => {
      isRunning = false;
      if (queue.length > 0) void runAll();
      else settleLater(isMore ? 0 : expireMs);
    }, (error) => {
      replies?.postMessage({ broken: { code: "INTERNAL", message: `The topic store failed: ${errorMessage(error)}` } });
    });
  }, delayMs);
}

requests.on("message", (request: StoreCall | Uint8Array) => {
  // While other calls wait for a connection, this call returns immediately why there is none.
  const why = isRunning ? store?.whyNotConnected ?? null : null;
  if (why !== null && !(request instanceof Uint8Array) && request.method === "whyNotStored") {
    replies?.postMessage({ id: request.id, value: why });
    return;
  }
  queue.push(request);
  if (!isRunning) void runAll();
});
