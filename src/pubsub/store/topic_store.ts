/**
 * A server's topic store, which takes requests and returns responses. The store accesses the disk in threads of its
 * own. Requests that arrive during a commit form the next transaction. A response is sent only when its transaction is
 * durable. `close` ends the threads.
 */
import { MessageChannel, Worker } from "node:worker_threads";
import { BatonError } from "../../base/errors.ts";
import { type StorageRequestSender, StorageThread, type StorageWorker } from "../../base/storage/storage_thread.ts";
import { CleanupScope, onAbort, throwIfAborted } from "../../base/support/abort.ts";
import { type StatusCode, statusCodes } from "../wire/status_codes.ts";
import { FrameBatch, unpackFrameBatch } from "./thread/frame_batch.ts";
import type { IncomingContent, OutgoingContent, TopicContentId } from "./operations/owned_store.ts";
import {
  batchesInFlightMax,
  defaultTopicStoreOptions,
  exportRoundsBeforeSealMax,
  heldGetsMax,
  operationBytesInFlightMax,
  operationsInFlightMax,
  putBytesBeforeSealMax,
  threadBatchBytes,
  threadBatchOperations,
  type TopicStoreOptions,
} from "./limits/topic_store_limits.ts";
import {
  storeRequestKinds,
  type TopicStoreCalls,
  topicStoreCalls,
  type TopicStoreEvent,
  type TopicThreadCalls,
} from "./thread/topic_store_messages.ts";

/** A client's request for the store, with the values that the server adds. */
export interface SubmittedRequest {
  /** The server's number of the request, from 0 to 2^31 - 1. The response contains the same number. */
  readonly ticket: number;
  /** The epoch in which the server owns the topic. If the store has another epoch, the response is NOT_OWNER. */
  readonly epoch: number;
  readonly frames: readonly Uint8Array[];
  /** If true, the store holds a get until there is a message or the get is canceled. */
  readonly wait: boolean;
  /** The most bytes that the request and its response need in memory. */
  readonly bytes: number;
}

/** A response as it is sent to the client. */
export interface EncodedResponse {
  readonly ticket: number;
  readonly code: StatusCode;
  /** The frames of the response; empty if the request is invalid. */
  readonly frames: readonly Uint8Array[];
}

export interface TopicStoreHooks {
  /** Called with durable responses, in any order. Their frames are views of one buffer. */
  readonly onResponses: (responses: readonly EncodedResponse[]) => void;
  /**
   * Called once when the disk fails or another process opens the data. No response follows. The caller must not
   * report requests without a response as failed, because their outcome is unknown.
   */
  readonly onBroken: (error: BatonError) => void;
  /** Reports a problem to the operator, for example a damaged row (only one time) or a disk that is nearly full. */
  readonly onProblem?: (problem: BatonError) => void;
  /** Called when a topic of a shared store must be opened again, or was opened by another server. */
  readonly onTopicLost?: (topic: string) => void;
}

/** The running storage thread of a store, and the port for its requests. */
export interface StartedStoreThread {
  readonly worker: StorageWorker;
  readonly requests: StorageRequestSender;
  /** The thread that checkpoints the log, if the store has such a thread. */
  readonly checkpointer?: StorageWorker;
}

/** Starts a storage thread. The thread receives its requests through the port in its `workerData`. */
export function startStoreThread(url: URL): StartedStoreThread {
  const { port1, port2 } = new MessageChannel();
  return { worker: new Worker(url, { workerData: port2, transferList: [port2] }), requests: port1 };
}

/** Starts the threads of a store in SQLite files. */
function startFileThreads(): StartedStoreThread {
  return {
    ...startStoreThread(new URL("./topic_store_worker.ts", import.meta.url)),
    checkpointer: new Worker(new URL("./topic_store_checkpoint_worker.ts", import.meta.url)),
  };
}

/** How the storage thread of a store is started and named. */
export interface StoreThreadStarter {
  /** Names the store in error messages, for example "The topic store in /data". */
  readonly what: string;
  readonly start: () => StartedStoreThread;
  /** The folder of the store's files, whose log must be checkpointed. Null if the store has no files. */
  readonly dataDir?: string | null;
}

type TopicStoreMethods = {
  readonly [Name in keyof TopicStoreCalls]: (
    ...values: Parameters<TopicStoreCalls[Name]>
  ) => Promise<ReturnType<TopicStoreCalls[Name]>>;
};

/** Declares the methods that the static block of `TopicStore` defines: one for each of `topicStoreCalls`. */
const DeclaredMethods = Object as unknown as new () => TopicStoreMethods;

export class TopicStore extends DeclaredMethods {
  static {
    for (const name of topicStoreCalls) {
      const value = function (this: TopicStore, ...values: unknown[]) {
        return this.#call(name, values);
      };
      Object.defineProperty(TopicStore.prototype, name, { value });
    }
  }

  readonly #dataDir: string | null;
  readonly #hooks: TopicStoreHooks;
  readonly #thread: StorageThread<TopicThreadCalls, TopicStoreEvent>;
  readonly #requests: StorageRequestSender;
  /** The thread that checkpoints the log; null if the store has no files. */
  readonly #checkpointer: StorageWorker | null;
  readonly #packer = new FrameBatch();
  /** The bytes of each operation in flight, by ticket; -1 for a held get. */
  readonly #tickets = new Map<number, number>();
  /** A random ID that was created with the store. */
  storeId = "";
  #waitingGets = 0;
  #bytes = 0;
  /** The number of batches that the thread has not finished. */
  #batches = 0;
  #isScheduled = false;

  private constructor(hooks: TopicStoreHooks, { what, start, dataDir = null }: StoreThreadStarter) {
    super();
    this.#hooks = hooks;
    const { worker, requests, checkpointer = null } = start();
    this.#requests = requests;
    this.#thread = new StorageThread(worker, {
      what,
      requests,
      onEvent: (event) => this.#handleEvent(event),
      onBroken: (error) => hooks.onBroken(error),
    });
    this.#dataDir = dataDir;
    this.#checkpointer = checkpointer;
    this.#checkpointer?.on("message", () => void this.#thread.call("checkpointed").catch(() => {}));
    // The storage thread then checkpoints the log itself, but later.
    this.#checkpointer?.on("error", () => {});
  }

  /**
   * Opens the store in a data directory; creates it if there is none. Rejects with LOCK_BUSY if another server uses the
   * directory, CONFIG if the format is unknown, or IO if the store cannot be read or written. A damaged log is also an
   * IO error, unless `acceptDamagedLog` is true.
   */
  static async open(
    dataDir: string,
    hooks: TopicStoreHooks,
    { acceptDamagedLog = false, server = "none", startThreads = startFileThreads, ...options }:
      & Partial<TopicStoreOptions>
      & {
        readonly acceptDamagedLog?: boolean;
        readonly startThreads?: () => StartedStoreThread;
        /** The server's ID, as the sender of responses. */
        readonly server?: string;
      } = {},
  ): Promise<TopicStore> {
    const opening = { dataDir, server, options: { ...defaultTopicStoreOptions, ...options }, acceptDamagedLog };
    const thread = { what: `The topic store in ${dataDir}`, start: startThreads, dataDir };
    return await TopicStore.openThread(thread, opening, hooks);
  }

  /** Starts a storage thread and opens its store. Rejects with the thread's error, or with the signal's reason. */
  static async openThread(
    thread: StoreThreadStarter,
    opening: object,
    hooks: TopicStoreHooks,
    signal?: AbortSignal,
  ): Promise<TopicStore> {
    throwIfAborted(signal);
    const store = new TopicStore(hooks, thread);
    using _ends = new CleanupScope(onAbort(signal, () => store.#thread.stopOpening()));
    try {
      store.storeId = await store.#thread.open(opening);
      return store;
    } catch (error) {
      await store.#endOthers();
      throwIfAborted(signal);
      throw error;
    }
  }

  /**
   * Submits a request; `onResponses` is called with its response. Returns false, and does nothing, if too many requests
   * are in flight. Throws if the store has failed. The ticket must not be in use.
   */
  submit({ ticket, epoch, frames, wait: waits, bytes: needed }: SubmittedRequest): boolean {
    if (this.#thread.broken !== null) throw this.#thread.broken;
    const bytes = waits ? 0 : needed;
    if (waits ? this.#waitingGets >= heldGetsMax : this.#tickets.size - this.#waitingGets >= operationsInFlightMax) {
      return false;
    }
    if (this.#bytes > 0 && this.#bytes + bytes > operationBytesInFlightMax) return false;
    this.#tickets.set(ticket, waits ? -1 : bytes);
    if (waits) this.#waitingGets++;
    this.#bytes += bytes;
    this.#packer.add({ ticket, kind: waits ? storeRequestKinds.held : storeRequestKinds.immediate, epoch, frames });
    if (this.#packer.count >= threadBatchOperations || this.#packer.byteLength >= threadBatchBytes) this.#postBatch();
    else this.#schedule();
    return true;
  }

  /** Ends the wait of a held get, which then gets its response immediately. */
  cancel(ticket: number): void {
    if (this.#thread.broken !== null || !this.#tickets.has(ticket)) return;
    this.#packer.add({ ticket, kind: storeRequestKinds.cancel, epoch: 0, frames: [] });
    this.#schedule();
  }

  /**
   * Exports the topic's copy of this epoch in pieces of about 1 MiB, which can be read only once. Sends the messages of
   * an open copy first, and calls `seal` when few messages are left. After a null, the caller must request the next
   * piece only when the earlier pieces have arrived; few messages are then left.
   */
  export(topic: string, epoch: number, seal: () => Promise<void>): OutgoingContent {
    let hash = "";
    return { pieces: this.#pieces(topic, epoch, { seal, done: (digest) => hash = digest }), hash: () => hash };
  }

  /**
   * Stages content that another server has sealed. Stages nothing if the content is incomplete. Rejects with BAD_DATA
   * or PROTOCOL.
   */
  async importStaged(topic: string, content: TopicContentId, { pieces, hash }: IncomingContent): Promise<void> {
    const transfer = await this.importBegin(topic, content);
    let isDone = false;
    try {
      // A copy is sent, because sending the piece would transfer its whole buffer.
      for await (const piece of pieces) await this.importPiece(transfer, piece.slice());
      await this.importDone(transfer, hash());
      isDone = true;
    } finally {
      if (!isDone && this.#thread.broken === null) await this.importEnd(transfer);
    }
  }

  async *#pieces(topic: string, epoch: number, { seal, done }: {
    readonly seal: () => Promise<void>;
    readonly done: (hash: string) => void;
  }): AsyncGenerator<Uint8Array | null, void, void> {
    const transfer = await this.exportBegin(topic, epoch);
    try {
      for (let rounds = 0, bytes = 0;;) {
        const { piece, isCaughtUp, hash } = await this.exportNext(transfer);
        if (hash !== null) return done(hash);
        if (piece !== null) yield piece;
        bytes += piece?.byteLength ?? 0;
        if (!isCaughtUp) continue;
        if (bytes <= putBytesBeforeSealMax || rounds++ === exportRoundsBeforeSealMax) await seal();
        else yield null;
        bytes = 0;
      }
    } finally {
      if (this.#thread.broken === null) await this.exportEnd(transfer);
    }
  }

  /** Executes all submitted requests, then closes the store. Held gets get no response. */
  async close(): Promise<void> {
    if (this.#packer.count > 0) this.#postBatch();
    await this.#thread.close().catch(() => {}); // all sent responses are durable
    await this.#endOthers();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#batches >= batchesInFlightMax) return;
    this.#isScheduled = true;
    // The batch is posted at the end of this event-loop turn, because one read from a socket brings many requests.
    queueMicrotask(() => {
      this.#isScheduled = false;
      if (this.#packer.count > 0 && this.#thread.broken === null) this.#postBatch();
    });
  }

  #postBatch(): void {
    const bytes = this.#packer.take();
    this.#batches++;
    this.#thread.postBatch(bytes);
  }

  #call(method: keyof TopicStoreCalls, values: unknown[]): Promise<unknown> {
    // Operations submitted before the call are executed first.
    if (this.#packer.count > 0) this.#postBatch();
    return this.#thread.call(method, ...values as Parameters<TopicStoreCalls[typeof method]>);
  }

  #handleEvent(event: TopicStoreEvent): void {
    switch (event.kind) {
      case "responses":
        this.#batches -= event.batches;
        this.#handleResponses(event.bytes);
        // Response handlers may have submitted requests.
        if (this.#packer.count > 0) this.#schedule();
        break;
      case "problem":
        this.#hooks.onProblem?.(new BatonError(event.code, event.message));
        break;
      case "checkpoint":
        this.#checkpointer?.postMessage({ dataDir: this.#dataDir });
        break;
      case "topic lost":
        this.#hooks.onTopicLost?.(event.topic);
        break;
    }
  }

  #handleResponses(piece: Uint8Array): void {
    const responses: EncodedResponse[] = [];
    for (const { ticket, kind, frames } of unpackFrameBatch(piece)) {
      responses.push({ ticket, code: statusCodes[kind] as StatusCode, frames });
      const bytes = this.#tickets.get(ticket) ?? 0;
      this.#tickets.delete(ticket);
      if (bytes < 0) this.#waitingGets--;
      else this.#bytes -= bytes;
    }
    if (responses.length > 0) this.#hooks.onResponses(responses);
  }

  async #endOthers(): Promise<void> {
    this.#requests.close();
    await this.#checkpointer?.terminate();
  }
}
