/** The thread that waits for the disk, so that the server never does. Batches in order; those that are there are one transaction. */
import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from "node:worker_threads";
import { BatonError } from "../../errors.ts";
import { ResponsePacker, unpackOperations } from "../../wire/pubsub/store_batch.ts";
import type { StoreOperation } from "../../wire/pubsub/store_operations.ts";
import type { ExportStep } from "./export_topic.ts";
import { RefusedPuts } from "./refused_puts.ts";
import { StoreEngine } from "./store_engine.ts";
import { responsePieceBytes, transactionBytes } from "./topic_store_limits.ts";
import type { TopicStoreCalls, TopicStoreReply, TopicStoreRequest } from "./topic_store_messages.ts";
import type { StoreOptions } from "./store_options.ts";
import { TopicTransfer } from "./topic_transfer.ts";
import { TopicMaintenance } from "./topic_maintenance.ts";
import { checkpointAtOnceBytes, checkpointBytes, isDiskFull, storeError, TopicDatabase } from "./topic_database.ts";

/** Moves of cursors that nobody waits for are on the disk after so long, or after `idleMs` where others come all the time. */
const settleMs = 20;
/** The disk is tidied after so long without work, in steps of so many pages, so that work that comes need not wait. */
const idleMs = 200;
const shrinkPages = 256;
/** Between two looks for messages that have become too old, when nothing else is done. */
const expireMs = 1_000;
const idleCheckpointBytes = 1 << 20;

const port = parentPort;
if (port === null) throw new Error("The storage thread was started as a program");
const requests = workerData as MessagePort;

/** After a write that found no room nothing is written for so long. */
const pauseMs = 1_000;
/** So long after it the store counts as full that has stored nothing since: a quota is not seen before one writes. */
const fullAfterRefusalMs = 30_000;
const diskFull = "the disk of this server is full, and nothing was changed";

class WorkerStore {
  readonly #database: TopicDatabase;
  readonly #options: StoreOptions;
  #engine!: StoreEngine;
  #transfer!: TopicTransfer;
  #maintenance!: TopicMaintenance;
  readonly #responses = new ResponsePacker();
  readonly #refusedPuts = new RefusedPuts();
  /** Answered of the batch that is under way. */
  #responded: number[] = [];
  /** Nothing is written until then: the disk had no room. */
  #pausedUntilMs = 0;
  /** So often in a row, without a transaction that found some. */
  #refusals = 0;
  #commitsAtRefusal = -1;
  #refusedAtMs = -Infinity;
  /** When messages that are too old were looked for last, and how long that took. */
  #expired = { atMs: 0, tookMs: 0 };
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isCheckpointing = false;
  #diskWarning: string | null = null;
  #workedMs = 0;
  readonly #expires: boolean;

  constructor(dataDir: string, options: StoreOptions, acceptDamagedLog: boolean) {
    this.#options = options;
    this.#expires = options.retainMs !== null;
    this.#database = new TopicDatabase(dataDir, { acceptDamagedLog });
    this.#database.damage.onFound = (sentence) => reply({ kind: "damage", sentence });
    try {
      this.#load();
      this.#transfer.dropIncomplete();
    } catch (error) {
      this.#database.close();
      throw storeError(error, dataDir);
    }
    this.#afterWork();
  }

  /** This batch, and those that `next` gives when it has come to its end: null when there is none. */
  batch(bytes: Uint8Array, next: () => Uint8Array | null): void {
    this.#responded = [];
    const batches = [bytes];
    try {
      this.#engine.execute(operationsOf(batches, next), this.#isPaused ? diskFull : null);
    } catch (error) {
      this.#recoverFromFullDisk(error);
      this.#engine.execute(without(this.#responded, operationsOf(batches, () => null)), diskFull);
    }
    this.#sendResponses(batches.length);
    this.#afterWork();
  }

  get #isPaused(): boolean {
    return performance.now() < this.#pausedUntilMs;
  }

  /** What is on the disk, into memory. */
  #load(): void {
    this.#engine = new StoreEngine(this.#database, this.#options, {
      wallClockMs: () => Date.now(),
      refusedPuts: this.#refusedPuts,
      warn: (sentence) => reply({ kind: "warning", sentence }),
      response: (response) => {
        this.#responses.add(response);
        this.#responded.push(response.ticket);
        if (this.#responses.byteLength >= responsePieceBytes) this.#sendResponses(0);
      },
    });
    this.#transfer = new TopicTransfer(this.#database, this.#engine, this.#transfer ?? null);
    this.#maintenance = new TopicMaintenance(this.#database, this.#engine);
  }

  /**
   * Of a transaction that found no room nothing is stored: what is in memory is read from the disk again, and goes on being
   * read. Any other error is thrown: after it nobody can say what is on the disk.
   */
  #recoverFromFullDisk(error: unknown): void {
    if (!isDiskFull(error)) throw error;
    this.#database.rollBack();
    this.#engine.abandon(diskFull);
    this.#load();
    // In the log there may be room again when what it has is in the database.
    this.#database.checkpoint();
    this.#refusedAtMs = performance.now();
    this.#pausedUntilMs = this.#refusedAtMs + pauseMs;
    this.#refusals = this.#database.commits === this.#commitsAtRefusal ? this.#refusals + 1 : 0;
    this.#commitsAtRefusal = this.#database.commits;
    clearTimeout(this.#timer);
    // What nobody waits for is tried less and less often: each time all who wait for a message have to ask again.
    this.#after(pauseMs * 2 ** Math.min(this.#refusals, 5), () => this.#resume());
  }

  #resume(): void {
    this.#transfer.dropIncomplete();
    this.#settle();
  }

  call(id: number, method: keyof TopicStoreCalls, values: readonly unknown[]): void {
    try {
      const value = this.#called(method, values);
      reply({ kind: "returned", id, value }, buffersOf(value));
    } catch (error) {
      const refusal = isDiskFull(error) ? new BatonError("STORE_FULL", `Cannot ${method}: ${diskFull}`) : error;
      if (refusal !== error) this.#recoverFromFullDisk(error);
      // A refusal changes nothing; anything else may have left memory and disk apart.
      if (!(refusal instanceof BatonError) || refusal.code === "IO") throw refusal;
      reply({ kind: "refused", id, code: refusal.code, message: refusal.message });
    }
    if (this.#responses.count > 0) this.#sendResponses(0);
    this.#afterWork();
  }

  #called(method: keyof TopicStoreCalls, values: readonly unknown[]): unknown {
    if (method === "summaries") return this.#engine.topics.summaries();
    if (method === "statistics") {
      return {
        topics: this.#engine.topics.count,
        waitingGets: this.#engine.waitingCount,
        usedBytes: this.#database.usedBytes(),
        diskShare: this.#engine.disk.share,
        full: this.#whyFull(),
        commits: this.#database.commits,
        damages: this.#database.damage.count,
        clientsShare: this.#engine.clientsShare,
        clientsForgotten: this.#engine.capacity.forgotten,
      };
    }
    if (method === "show" || method === "forgetClient" || method === "repair") {
      return (this.#maintenance[method] as (...values: never[]) => unknown).apply(this.#maintenance, values as never[]);
    }
    return (this.#transfer[method] as (...values: never[]) => unknown).apply(this.#transfer, values as never[]);
  }

  /** Why a put would be refused for want of room on the disk; null: it would not. Others may have filled it since the last commit. */
  #whyFull(): string | null {
    const hasStoredSince = this.#database.commits !== this.#commitsAtRefusal;
    if (!hasStoredSince && performance.now() - this.#refusedAtMs < fullAfterRefusalMs) return diskFull;
    this.#engine.disk.measure();
    return this.#engine.disk.full();
  }

  get storeId(): string {
    return this.#database.storeId;
  }

  /** The other thread has copied most of the log; the rest is little, and then it is written from its beginning again. */
  checkpointed(): void {
    this.#isCheckpointing = false;
    this.#database.checkpoint();
  }

  close(): void {
    clearTimeout(this.#timer);
    try {
      this.#engine.settle();
    } catch (error) {
      if (!isDiskFull(error)) throw error; // moves that nobody waits for
      this.#database.rollBack();
    }
    this.#database.close();
  }

  #sendResponses(batches: number): void {
    const bytes = this.#responses.take();
    reply({ kind: "responses", bytes, batches }, [bytes.buffer as ArrayBuffer]);
  }

  #afterWork(): void {
    this.#checkpoint(checkpointBytes);
    const warning = this.#engine.disk.warning();
    if ((warning === null) !== (this.#diskWarning === null)) reply({ kind: "disk warning", sentence: warning });
    this.#diskWarning = warning;
    this.#workedMs = performance.now();
    // From the first work on, not from the last: whoever asks all the time must not keep moves from the disk.
    if (this.#timer === undefined) this.#after(settleMs, () => this.#settle());
  }

  #settle(): void {
    if (this.#engine.settle()) this.#after(0, () => this.#settle());
    else this.#after(idleMs, () => this.#idle());
  }

  #idle(): void {
    this.#expire();
    if (performance.now() - this.#workedMs < idleMs) return this.#settle();
    this.#checkpoint(idleCheckpointBytes);
    this.#engine.disk.measure();
    if (this.#database.shrink(shrinkPages)) return this.#after(0, () => this.#idle());
    if (this.#database.hasLongLog) {
      if (!this.#isCheckpointing) this.#database.shortenLog();
      if (this.#database.hasLongLog) return this.#after(idleMs, () => this.#idle());
    }
    this.#reserve();
    if (this.#expires) this.#after(expireMs, () => this.#settle());
  }

  #reserve(): void {
    try {
      this.#database.reserveLog();
    } catch {
      // A full disk may have room for what comes all the same; a commit that finds none says so.
    }
  }

  /** Also where others come all the time; a small part of the time is for it, however many topics there are. */
  #expire(): void {
    const nowMs = performance.now();
    const { atMs, tookMs } = this.#expired;
    if (!this.#expires || nowMs - atMs < Math.max(expireMs / 2, 20 * tookMs)) return;
    this.#engine.expire();
    this.#expired = { atMs: nowMs, tookMs: performance.now() - nowMs };
  }

  #after(delayMs: number, work: () => void): void {
    this.#timer = setTimeout(
      guarded(() => {
        this.#timer = undefined;
        try {
          work();
        } catch (error) {
          this.#recoverFromFullDisk(error);
        }
        if (this.#responses.count > 0) this.#sendResponses(0);
      }),
      delayMs,
    );
  }

  #checkpoint(bytesMin: number): void {
    const { loggedBytes } = this.#database;
    if (loggedBytes >= checkpointAtOnceBytes) this.#database.checkpoint();
    if (loggedBytes < bytesMin || this.#isCheckpointing) return;
    this.#isCheckpointing = true;
    reply({ kind: "checkpoint" });
  }
}

/** Of the batches, and of those that follow, which are noted there, as long as one transaction may take them. */
function* operationsOf(
  batches: Uint8Array[],
  next: () => Uint8Array | null,
): Generator<StoreOperation, void, void> {
  let bytes = 0;
  for (let at = 0; at < batches.length; at++) {
    const batch = batches[at] as Uint8Array;
    yield* unpackOperations(batch);
    bytes += batch.byteLength;
    if (at + 1 < batches.length || bytes >= transactionBytes) continue;
    const more = next();
    if (more !== null) batches.push(more);
  }
}

function* without(
  tickets: readonly number[],
  operations: Iterable<StoreOperation>,
): Generator<StoreOperation, void, void> {
  const known = new Set(tickets);
  for (const operation of operations) {
    if (operation.kind === "cancel" || !known.has(operation.ticket)) yield operation;
  }
}

/** A piece of a topic is not copied on its way out of here. */
function buffersOf(value: unknown): ArrayBuffer[] {
  const piece = (value as ExportStep | null | undefined)?.piece;
  return piece instanceof Uint8Array ? [piece.buffer as ArrayBuffer] : [];
}

let store: WorkerStore | null = null;
let dataDir = "";
let isBroken = false;

function reply(message: TopicStoreReply, transfer: ArrayBuffer[] = []): void {
  port?.postMessage(message, transfer);
}

/** After a failure nothing is done any more, until another thread opens the store again and reads what is on the disk. */
function guarded(work: () => void): () => void {
  return () => {
    if (isBroken) return;
    try {
      work();
    } catch (error) {
      isBroken = true;
      const { code, message } = storeError(error, dataDir);
      reply({ kind: "broken", code, message });
    }
  };
}

function response(request: TopicStoreRequest): void {
  if (request.kind === "open") {
    dataDir = request.dataDir;
    store = new WorkerStore(request.dataDir, request.options, request.acceptDamagedLog);
    return reply({ kind: "opened", storeId: store.storeId });
  }
  if (store === null) throw new Error("the store is not open");
  if (request.kind === "batch") store.batch(request.bytes, nextBatch);
  else if (request.kind === "call") store.call(request.id, request.method, request.values);
  else if (request.kind === "checkpointed") store.checkpointed();
  else {
    store.close();
    store = null;
    reply({ kind: "closed" });
  }
}

/** Came behind a batch, and is none. */
let heldBack: TopicStoreRequest | null = null;

/** What has come since the work began; everything in its order. */
function nextBatch(): Uint8Array | null {
  if (heldBack !== null) return null;
  const request = (receiveMessageOnPort(requests) as { message: TopicStoreRequest } | undefined)?.message ?? null;
  if (request?.kind === "batch") return request.bytes;
  heldBack = request;
  return null;
}

requests.on("message", (request: TopicStoreRequest) => {
  guarded(() => {
    for (let next: TopicStoreRequest | null = request; next !== null; next = heldBack) {
      heldBack = null;
      response(next);
    }
  })();
});
