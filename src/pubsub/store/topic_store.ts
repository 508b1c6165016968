/**
 * A server's topic store: takes operations and returns responses; disk access happens in its own threads. Operations
 * submitted during a commit form the next transaction. Responses are sent only after their transaction is durable.
 * `close` ends the threads.
 */
import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import { BatonError } from "../../errors.ts";
import { type StatusCode, statusCodes } from "../../wire/pubsub/status_codes.ts";
import { FrameBatch, unpackFrames } from "./frame_batch.ts";
import type { ContentName, IncomingContent, OutgoingContent } from "./owned_store.ts";
import {
  batchBytes,
  batchesMax,
  batchOperations,
  defaultStoreOptions,
  operationBytesMax,
  operationsMax,
  roundsBeforeSealMax,
  sealBelowBytes,
  type StoreOptions,
  waitingGetsMax,
} from "./topic_store_limits.ts";
import {
  storeCalls,
  storeRequests,
  type TopicStoreCalls,
  type TopicStoreReply,
  type TopicStoreRequest,
} from "./topic_store_messages.ts";

/** A client's request for the store, and what the server adds. */
export interface SubmittedRequest {
  /** The server's number of the request, which the response repeats. From 0 to 2^31 - 1. */
  readonly ticket: number;
  /** The epoch in which the server owns the topic. If another one is stored, the response is NOT_OWNER. */
  readonly epoch: number;
  /** The frames as they arrived. */
  readonly frames: readonly Uint8Array[];
  /** A get is held until there is a message, or a `cancel`. */
  readonly wait: boolean;
  /** Bytes that it needs at most in memory. */
  readonly bytes: number;
}

/** A response as it is sent to the client. */
export interface EncodedResponse {
  readonly ticket: number;
  readonly code: StatusCode;
  /** Empty: the request is invalid. */
  readonly frames: readonly Uint8Array[];
}

export interface TopicStoreHooks {
  /** Durable responses, in any order. Frames are views onto one shared buffer. */
  readonly onResponses: (responses: readonly EncodedResponse[]) => void;
  /**
   * The disk failed, or another process opened the data. Called once; no further responses follow. The outcome of the
   * operations with these tickets is unknown: they must not be reported as failed.
   */
  readonly onBroken: (error: BatonError, tickets: readonly number[]) => void;
  /** Text of a disk warning; null: the disk is no longer nearly full. */
  readonly onDiskWarning?: (sentence: string | null) => void;
  /** Reports damaged data once per row; requests for it are refused. */
  readonly onDamage?: (sentence: string) => void;
  /** Reports something to the operator, once. */
  readonly onWarning?: (sentence: string) => void;
}

interface PendingTopicStoreCall {
  readonly done: (value: unknown) => void;
  readonly failed: (error: BatonError) => void;
}

type TopicStoreMethods = {
  readonly [Name in keyof TopicStoreCalls]: (
    ...values: Parameters<TopicStoreCalls[Name]>
  ) => Promise<ReturnType<TopicStoreCalls[Name]>>;
};

/** Declares the methods that the static block of `TopicStore` defines: one for each of `storeCalls`. */
const DeclaredMethods = Object as unknown as new () => TopicStoreMethods;

export class TopicStore extends DeclaredMethods {
  static {
    for (const name of storeCalls) {
      const value = function (this: TopicStore, ...values: unknown[]) {
        return this.#call(name, values);
      };
      Object.defineProperty(TopicStore.prototype, name, { value });
    }
  }

  readonly #dataDir: string;
  readonly #hooks: TopicStoreHooks;
  readonly #worker: Worker;
  /** A port of its own: the thread can take further requests from it in the middle of its work. */
  readonly #requests: MessagePort;
  readonly #checkpointer: Worker;
  readonly #packer = new FrameBatch();
  /** Operations in flight: bytes by ticket, or -1 for a held get. */
  readonly #tickets = new Map<number, number>();
  readonly #pendingCalls = new Map<number, PendingTopicStoreCall>();
  #nextCall = 0;
  /** Random id, created with the store. */
  storeId = "";
  #waitingGets = 0;
  #bytes = 0;
  /** Batches that the thread has not finished. */
  #batches = 0;
  #isScheduled = false;
  #broken: BatonError | null = null;
  #opening: PendingTopicStoreCall | null = null;
  #closing: PendingTopicStoreCall | null = null;

  private constructor(dataDir: string, hooks: TopicStoreHooks) {
    super();
    this.#dataDir = dataDir;
    this.#hooks = hooks;
    const { port1, port2 } = new MessageChannel();
    this.#requests = port1;
    this.#worker = new Worker(new URL("./topic_store_worker.ts", import.meta.url), {
      workerData: port2,
      transferList: [port2],
    });
    this.#checkpointer = new Worker(new URL("./topic_store_checkpoint_worker.ts", import.meta.url));
    this.#worker.on("message", (reply: TopicStoreReply) => this.#handleReply(reply));
    this.#worker.on("error", (error) => this.#failAll(this.#ioError(error.message)));
    this.#worker.on("exit", () => this.#failAll(this.#ioError("its thread ended")));
    this.#checkpointer.on("message", () => this.#post({ kind: "checkpointed" }));
    // The storage thread checkpoints itself, later.
    this.#checkpointer.on("error", () => {});
  }

  /**
   * Opens a data directory and creates it if needed. Rejects with LOCK_BUSY if another server uses it, CONFIG for
   * another format, IO if it cannot be read or written; a damaged log is an IO error unless accepted.
   */
  static async open(
    dataDir: string,
    hooks: TopicStoreHooks,
    { acceptDamagedLog = false, server = "none", ...options }: Partial<StoreOptions> & {
      readonly acceptDamagedLog?: boolean;
      /** The sender of the responses. */
      readonly server?: string;
    } = {},
  ): Promise<TopicStore> {
    const store = new TopicStore(dataDir, hooks);
    try {
      await new Promise((done, failed) => {
        store.#opening = { done, failed };
        const all = { ...defaultStoreOptions, ...options };
        store.#post({ kind: "open", dataDir, server, options: all, acceptDamagedLog });
      });
      return store;
    } catch (error) {
      await store.#terminate();
      throw error;
    }
  }

  /**
   * Submits a request; its response comes by the hook. Returns false if too many are in flight: nothing was taken, and
   * the client gets OVERLOADED. Throws after a failure of the store. The ticket must not be in use.
   */
  submit({ ticket, epoch, frames, wait: waits, bytes: needed }: SubmittedRequest): boolean {
    if (this.#broken !== null) throw this.#broken;
    const bytes = waits ? 0 : needed;
    if (waits ? this.#waitingGets >= waitingGetsMax : this.#tickets.size - this.#waitingGets >= operationsMax) {
      return false;
    }
    if (this.#bytes > 0 && this.#bytes + bytes > operationBytesMax) return false;
    this.#tickets.set(ticket, waits ? -1 : bytes);
    if (waits) this.#waitingGets++;
    this.#bytes += bytes;
    this.#packer.add({ ticket, kind: waits ? storeRequests.held : storeRequests.immediate, epoch, frames });
    if (this.#packer.count >= batchOperations || this.#packer.byteLength >= batchBytes) this.#postBatch();
    else this.#schedule();
    return true;
  }

  /** Cancels a held get, which is then answered immediately. */
  cancel(ticket: number): void {
    if (this.#broken !== null || !this.#tickets.has(ticket)) return;
    this.#packer.add({ ticket, kind: storeRequests.cancel, epoch: 0, frames: [] });
    this.#schedule();
  }

  /**
   * Exports the copy of this epoch in pieces of about 1 MiB, to be read once. Messages of an open copy are sent first;
   * `seal` is called when few are left. Null between pieces: earlier pieces must arrive before more is requested, so
   * that little is left.
   */
  export(topic: string, epoch: number, seal: () => Promise<void>): OutgoingContent {
    let hash = "";
    return { pieces: this.#pieces(topic, epoch, { seal, done: (digest) => hash = digest }), hash: () => hash };
  }

  /**
   * Stages content that another server has sealed. Rejects with BAD_DATA or PROTOCOL and stages nothing if it is not
   * complete.
   */
  async importStaged(topic: string, content: ContentName, { pieces, hash }: IncomingContent): Promise<void> {
    const transfer = await this.importBegin(topic, content);
    let isDone = false;
    try {
      // A copy of this piece alone: the rest of its buffer would be transferred, too.
      for await (const piece of pieces) await this.importPiece(transfer, piece.slice());
      await this.importDone(transfer, hash());
      isDone = true;
    } finally {
      if (!isDone && this.#broken === null) await this.importEnd(transfer);
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
        if (bytes <= sealBelowBytes || rounds++ === roundsBeforeSealMax) await seal();
        else yield null;
        bytes = 0;
      }
    } finally {
      if (this.#broken === null) await this.exportEnd(transfer);
    }
  }

  /** Closes the data directory after executing all submitted operations. Held gets are not answered. */
  async close(): Promise<void> {
    if (this.#broken === null) {
      await new Promise((done) => {
        this.#closing = { done, failed: done };
        if (this.#packer.count > 0) this.#postBatch();
        this.#post({ kind: "close" });
      });
    }
    await this.#terminate();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#batches >= batchesMax) return;
    this.#isScheduled = true;
    // Posted at the end of this event-loop turn: one read from a socket brings many requests.
    queueMicrotask(() => {
      this.#isScheduled = false;
      if (this.#packer.count > 0 && this.#broken === null) this.#postBatch();
    });
  }

  #postBatch(): void {
    const bytes = this.#packer.take();
    this.#batches++;
    this.#post({ kind: "batch", bytes }, [bytes.buffer as ArrayBuffer]);
  }

  #post(request: TopicStoreRequest, transfer: ArrayBuffer[] = []): void {
    if (this.#broken === null) this.#requests.postMessage(request, transfer);
  }

  #call(method: keyof TopicStoreCalls, values: unknown[]): Promise<unknown> {
    if (this.#broken !== null) return Promise.reject(this.#broken);
    // Operations submitted before the call are executed first.
    if (this.#packer.count > 0) this.#postBatch();
    return new Promise((done, failed) => {
      const id = this.#nextCall++;
      this.#pendingCalls.set(id, { done, failed });
      this.#post({ kind: "call", id, method, values });
    });
  }

  #handleReply(reply: TopicStoreReply): void {
    switch (reply.kind) {
      case "responses":
        this.#batches -= reply.batches;
        this.#handleResponses(reply.bytes);
        // Operations submitted by the response handlers are posted as well.
        if (this.#packer.count > 0) this.#schedule();
        break;
      case "returned":
      case "refused":
        this.#settleCall(reply);
        break;
      case "broken":
        this.#failAll(new BatonError(reply.code, reply.message));
        break;
      case "disk warning":
        this.#hooks.onDiskWarning?.(reply.sentence);
        break;
      case "damage":
        this.#hooks.onDamage?.(reply.sentence);
        break;
      case "warning":
        this.#hooks.onWarning?.(reply.sentence);
        break;
      case "checkpoint":
        this.#checkpointer.postMessage({ dataDir: this.#dataDir });
        break;
      case "opened":
        this.storeId = reply.storeId;
        this.#opening?.done(undefined);
        this.#opening = null;
        break;
      case "closed":
        this.#closing?.done(undefined);
        break;
    }
  }

  #handleResponses(piece: Uint8Array): void {
    const responses: EncodedResponse[] = [];
    for (const { ticket, kind, frames } of unpackFrames(piece)) {
      responses.push({ ticket, code: statusCodes[kind] as StatusCode, frames });
      const bytes = this.#tickets.get(ticket) ?? 0;
      this.#tickets.delete(ticket);
      if (bytes < 0) this.#waitingGets--;
      else this.#bytes -= bytes;
    }
    if (responses.length > 0) this.#hooks.onResponses(responses);
  }

  #settleCall(reply: Extract<TopicStoreReply, { kind: "returned" | "refused" }>): void {
    const waiting = this.#pendingCalls.get(reply.id);
    this.#pendingCalls.delete(reply.id);
    if (reply.kind === "returned") waiting?.done(reply.value);
    else waiting?.failed(new BatonError(reply.code, reply.message));
  }

  #failAll(error: BatonError): void {
    if (this.#broken !== null) return;
    this.#broken = error;
    for (const { failed } of this.#pendingCalls.values()) failed(error);
    this.#pendingCalls.clear();
    const opening = this.#opening;
    this.#closing?.failed(error);
    if (opening !== null) opening.failed(error);
    else if (this.#closing === null) this.#hooks.onBroken(error, [...this.#tickets.keys()]);
    this.#tickets.clear();
  }

  async #terminate(): Promise<void> {
    this.#broken ??= this.#ioError("it was closed");
    this.#requests.close();
    await Promise.all([this.#worker.terminate(), this.#checkpointer.terminate()]);
  }

  #ioError(message: string): BatonError {
    return new BatonError("IO", `The topic store in ${this.#dataDir} cannot be read or written: ${message}`);
  }
}
