/**
 * The storage thread of a topic store in SQLite. The thread waits for the disk, so that the server never waits.
 * Executes all waiting batches in order in one transaction. Also handles full disks, and tidies the database when idle.
 */
import { BatonError } from "../../../base/errors.ts";
import { RefusedPuts } from "../limits/refused_puts.ts";
import { runStepsNow } from "../../../base/support/steps.ts";
import { SqliteTopicRows } from "./sqlite_topic_rows.ts";
import { StoreEngine } from "../engine/store_engine.ts";
import { ThreadRequests } from "../thread/thread_requests.ts";
import type { TopicStoreCalls, TopicStoreOpening } from "../thread/topic_store_messages.ts";
import {
  type ServedTopicStore,
  serveTopicStorePort,
  type TopicStorePort,
  type TopicStorePortOptions,
} from "../thread/topic_store_port.ts";
import type { TopicStoreOptions } from "../limits/topic_store_limits.ts";
import { TopicTransfer } from "../transfer/topic_transfer.ts";
import { TopicMaintenance } from "../engine/topic_maintenance.ts";
import { whyStoreNotWritable } from "../../../base/storage/write_access.ts";
import {
  blockingLogCheckpointBytes,
  isDiskFullError,
  logCheckpointBytes,
  TopicDatabase,
  topicDatabaseName,
  topicStoreError,
} from "./topic_database.ts";

/**
 * How long moved cursors for which no response waits stay unwritten, in milliseconds. Under constant load, `idleMs`
 * applies.
 */
const settleMs = 20;
/**
 * The idle time before the database is tidied, in milliseconds. Also the number of pages that one step frees: few, so
 * that new work can start soon.
 */
const idleMs = 200;
const shrinkPages = 256;
const expireMs = 1_000;
const idleCheckpointBytes = 1 << 20;
const nearlyFullCheckpointBytes = 512 << 10;

const pauseMs = 1_000;
/**
 * How long the store counts as full after a refused write, in milliseconds, unless it stores something. Only a write
 * can detect a quota.
 */
const fullAfterRefusalMs = 30_000;
const diskFull = "the disk of this server is full; nothing was changed";

type OpenTopicDatabase = (dataDir: string, options: { readonly acceptDamagedLog: boolean }) => TopicDatabase;

class WorkerStore implements ServedTopicStore {
  readonly #port: TopicStorePort;
  readonly #database: TopicDatabase;
  readonly #options: TopicStoreOptions;
  readonly #dataDir: string;
  #engine!: StoreEngine;
  #transfer!: TopicTransfer;
  #maintenance!: TopicMaintenance;
  readonly #requests: ThreadRequests;
  readonly #refusedPuts = new RefusedPuts();
  #pausedUntilMs = 0;
  #refusals = 0;
  #commitsAtRefusal = -1;
  #refusedAtMs = -Infinity;
  #expired = { atMs: 0, tookMs: 0 };
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isCheckpointing = false;
  #diskWarning: string | null = null;
  #workedMs = 0;
  readonly #expires: boolean;

  constructor(
    port: TopicStorePort,
    openDatabase: OpenTopicDatabase,
    { dataDir, server, options, acceptDamagedLog }: TopicStoreOpening,
  ) {
    this.#port = port;
    this.#requests = new ThreadRequests(server, (bytes, batches) => {
      port.emit({ kind: "responses", bytes, batches }, [bytes.buffer as ArrayBuffer]);
    });
    this.#options = options;
    this.#dataDir = dataDir;
    this.#expires = options.retainMs !== null;
    this.#database = openDatabase(dataDir, { acceptDamagedLog });
    this.#database.damage.onFound = (sentence) =>
      port.emit({
        kind: "problem",
        code: "IO",
        message: `Damaged data on the disk, requests for it are refused: ${sentence}`,
      });
    this.#database.closeIfFails(() => {
      this.#load();
      runStepsNow(this.#transfer.dropIncomplete());
    });
    this.#afterWork();
  }

  executeBatches(bytes: Uint8Array): void {
    this.#requests.respondedTickets = [];
    const batches = [bytes];
    try {
      const operations = this.#requests.operations(batches, () => this.#port.nextBatch());
      runStepsNow(this.#engine.execute(operations, this.#isPaused ? diskFull : null));
    } catch (error) {
      this.#recoverFromFullDisk(error);
      const left = this.#requests.operations(batches, () => null, new Set(this.#requests.respondedTickets));
      runStepsNow(this.#engine.execute(left, diskFull));
    }
    this.#requests.sendResponses(batches.length);
    this.#afterWork();
  }

  get #isPaused(): boolean {
    return performance.now() < this.#pausedUntilMs;
  }

  #load(): void {
    const rows = new SqliteTopicRows(this.#database);
    this.#engine = new StoreEngine(rows, this.#options, {
      wallClockMs: () => Date.now(),
      refusedPuts: this.#refusedPuts,
      warn: (sentence) => this.#port.emit({ kind: "problem", code: "STORE_FULL", message: sentence }),
      onResponse: (response) => this.#requests.encode(response),
    });
    runStepsNow(this.#engine.open());
    this.#transfer = new TopicTransfer(rows, this.#engine, this.#transfer ?? null);
    this.#maintenance = new TopicMaintenance(rows, this.#engine);
  }

  /**
   * Handles a full disk. The transaction has stored nothing, so the thread loads the state from the disk again and
   * continues with reads. Throws any other error, because the state on the disk is then unknown.
   */
  #recoverFromFullDisk(error: unknown): void {
    if (!isDiskFullError(error)) throw error;
    this.#database.rollBack();
    this.#engine.abandon(diskFull);
    this.#load();
    // A checkpoint may free space in the log.
    this.#database.checkpoint();
    this.#refusedAtMs = performance.now();
    this.#pausedUntilMs = this.#refusedAtMs + pauseMs;
    this.#refusals = this.#database.commits === this.#commitsAtRefusal ? this.#refusals + 1 : 0;
    this.#commitsAtRefusal = this.#database.commits;
    clearTimeout(this.#timer);
    // Tries writes again at growing intervals, because after each failed try all held gets must be sent again.
    this.#runAfter(pauseMs * 2 ** Math.min(this.#refusals, 5), () => {
      runStepsNow(this.#transfer.dropIncomplete());
      this.#settle();
    });
  }

  call(method: keyof TopicStoreCalls, values: readonly unknown[]): unknown {
    try {
      return this.#execute(method, values);
    } catch (error) {
      if (!isDiskFullError(error)) throw error;
      this.#recoverFromFullDisk(error);
      throw new BatonError("STORE_FULL", `Cannot change ${this.#dataDir}: ${diskFull}`);
    }
  }

  afterCall(): void {
    this.#requests.sendLateResponses();
    this.#afterWork();
  }

  #execute(method: keyof TopicStoreCalls, values: readonly unknown[]): unknown {
    if (method === "whyNotStored") return this.#whyFull() ?? whyStoreNotWritable(this.#dataDir, topicDatabaseName);
    if (method === "statistics") {
      return {
        topics: this.#engine.topics.count,
        usedBytes: this.#database.usedBytes(),
        diskShare: this.#engine.disk.usedShare,
        full: this.#whyFull(),
        commits: this.#database.commits,
        damages: this.#database.damage.count,
        losses: 0,
        clientsShare: this.#engine.clientsShare,
        clientsForgotten: this.#engine.capacity.forgottenCount,
      };
    }
    const owner: object = method in this.#maintenance ? this.#maintenance : this.#transfer;
    const result = (owner as Record<typeof method, (...values: readonly unknown[]) => unknown>)[method](...values);
    return runStepsNow(result);
  }

  /**
   * Returns the reason why the disk cannot take a put; null if it can. Measures the disk again, because other programs
   * may have used space since the last commit.
   */
  #whyFull(): string | null {
    const hasStoredSince = this.#database.commits !== this.#commitsAtRefusal;
    if (!hasStoredSince && performance.now() - this.#refusedAtMs < fullAfterRefusalMs) return diskFull;
    this.#engine.disk.measure();
    return this.#engine.disk.fullSentence();
  }

  get storeId(): string {
    return this.#database.storeId;
  }

  /** Copies the small rest of the log. The next commit can then write the log from its start. */
  checkpointed(): void {
    this.#isCheckpointing = false;
    this.#database.checkpoint();
  }

  close(): void {
    clearTimeout(this.#timer);
    try {
      runStepsNow(this.#engine.writePending());
    } catch (error) {
      if (!isDiskFullError(error)) throw error; // only changes for which no response waits are lost
      this.#database.rollBack();
    }
    this.#database.close();
  }

  #afterWork(): void {
    this.#checkpoint(logCheckpointBytes);
    const warning = this.#engine.disk.warningSentence();
    if (warning !== null && this.#diskWarning === null) {
      this.#port.emit({ kind: "problem", code: "IO", message: warning });
    }
    this.#diskWarning = warning;
    this.#workedMs = performance.now();
    // The delay starts with the first work after the last write: constant requests then do not delay the writing of
    // moved cursors.
    if (this.#timer === undefined) this.#runAfter(settleMs, () => this.#settle());
  }

  #settle(): void {
    if (runStepsNow(this.#engine.writePending())) this.#runAfter(0, () => this.#settle());
    else this.#runAfter(idleMs, () => this.#handleIdle());
  }

  #handleIdle(): void {
    this.#expire();
    if (performance.now() - this.#workedMs < idleMs) {
      // Even under constant refused requests, unused pages must become free for other messages.
      if (this.#engine.disk.isNearlyFull) this.#database.shrink(shrinkPages);
      return this.#settle();
    }
    // The database file takes its space while the disk has space.
    this.#checkpoint(this.#database.owedBytes > 0 ? 0 : idleCheckpointBytes);
    this.#engine.disk.measure();
    if (this.#database.shrink(shrinkPages)) return this.#runAfter(0, () => this.#handleIdle());
    if (this.#database.hasLongLog) {
      if (!this.#isCheckpointing) this.#database.shortenLog();
      if (this.#database.hasLongLog) return this.#runAfter(idleMs, () => this.#handleIdle());
    }
    try {
      this.#database.reserveLog();
    } catch {
      // The disk is full. Commits may still succeed; a commit that finds no space reports that.
    }
    if (this.#expires) this.#runAfter(expireMs, () => this.#settle());
  }

  /**
   * Searches for expired messages, even under constant load. Takes only a small share of the time, even with many
   * topics.
   */
  #expire(): void {
    const nowMs = performance.now();
    const { atMs, tookMs } = this.#expired;
    if (!this.#expires || nowMs - atMs < Math.max(expireMs / 2, 20 * tookMs)) return;
    runStepsNow(this.#engine.markExpiredTopics());
    this.#expired = { atMs: nowMs, tookMs: performance.now() - nowMs };
  }

  #runAfter(delayMs: number, work: () => void): void {
    this.#timer = setTimeout(() => this.#port.run(() => this.#runNow(work)), delayMs);
  }

  #runNow(work: () => void): void {
    this.#timer = undefined;
    try {
      work();
    } catch (error) {
      this.#recoverFromFullDisk(error);
    }
    this.#requests.sendLateResponses();
  }

  #checkpoint(bytesMin: number): void {
    // The log of a nearly full disk must not grow into the space that is reserved for positions.
    const blockingBytes = this.#engine.disk.isNearlyFull ? nearlyFullCheckpointBytes : blockingLogCheckpointBytes;
    if (this.#database.loggedBytes >= blockingBytes) this.#database.checkpoint();
    if (this.#database.loggedBytes < bytesMin || this.#isCheckpointing) return;
    this.#isCheckpointing = true;
    this.#port.emit({ kind: "checkpoint" });
  }
}

export interface TopicStoreThreadOptions extends Pick<TopicStorePortOptions, "requests" | "parent"> {
  readonly openDatabase?: OpenTopicDatabase;
}

export function serveTopicStore({
  openDatabase = (dataDir, options) => new TopicDatabase(dataDir, options),
  ...ports
}: TopicStoreThreadOptions): void {
  let dataDir = "";
  serveTopicStorePort({
    ...ports,
    open: (port, opening) => {
      ({ dataDir } = opening as TopicStoreOpening);
      return new WorkerStore(port, openDatabase, opening as TopicStoreOpening);
    },
    errorOf: (error) => topicStoreError(error, dataDir),
  });
}
