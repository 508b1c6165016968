/**
 * A server's topic store as the server sees it: operations in, responses out, the disk in threads of its own. What is
 * submitted while a commit runs is the next transaction; no response comes before its transaction is durable.
 * Owns its threads; `close` ends them.
 */
import { MessageChannel, type MessagePort, Worker } from "node:worker_threads";
import { BatonError } from "../../errors.ts";
import { OperationPacker, unpackResponses } from "../../wire/pubsub/store_batch.ts";
import type { ClientOperation, StoreResponse } from "../../wire/pubsub/store_operations.ts";
import type { ContentName, IncomingContent, OutgoingContent, TopicCopies, TopicCopy } from "./owned_store.ts";
import { getBytesMax } from "./read_messages.ts";
import {
  batchBytes,
  batchesMax,
  batchOperations,
  operationBytesMax,
  operationsMax,
  roundsBeforeSealMax,
  sealBelowBytes,
  waitingGetsMax,
} from "./topic_store_limits.ts";
import type { TopicStoreCalls, TopicStoreReply, TopicStoreRequest } from "./topic_store_messages.ts";
import type { TopicDetails } from "./topic_maintenance.ts";
import { defaultStoreOptions, type StoreOptions } from "./store_options.ts";

export interface TopicStoreHooks {
  /** Responses to operations, durable. Bodies are views onto one piece of memory. Not in the order of submission. */
  readonly responded: (responses: readonly StoreResponse[]) => void;
  /**
   * The disk failed, or somebody else opened the data. Called once; nothing more is answered. What became of the operations
   * with these tickets nobody knows: whoever asked for them must not be told that they failed.
   */
  readonly broken: (error: BatonError, tickets: readonly number[]) => void;
  /** The disk is fuller than the alarm allows: a sentence; null: it is not any more. */
  readonly diskWarning?: (sentence: string | null) => void;
  /** Something is not as it was stored; whoever asks for it is refused. Told of each row once. */
  readonly damage?: (sentence: string) => void;
  /** What an operator should know, once. */
  readonly warning?: (sentence: string) => void;
}

interface PendingStoreCall {
  readonly done: (value: unknown) => void;
  readonly failed: (error: BatonError) => void;
}

type StoreCallArguments<Name extends keyof TopicStoreCalls> = Parameters<TopicStoreCalls[Name]>;

export class TopicStore {
  readonly #dataDir: string;
  readonly #hooks: TopicStoreHooks;
  readonly #worker: Worker;
  /** Not the worker's own port: from this one its thread can also take what has come in the middle of its work. */
  readonly #requests: MessagePort;
  readonly #checkpointer: Worker;
  readonly #packer = new OperationPacker();
  /** What is under way: by ticket, its bytes; -1 for a get that waits. */
  readonly #tickets = new Map<number, number>();
  readonly #pendingCalls = new Map<number, PendingStoreCall>();
  #nextCall = 0;
  #storeId = "";
  #waitingGets = 0;
  #bytes = 0;
  /** Batches that the thread has not finished. */
  #batches = 0;
  #isScheduled = false;
  #broken: BatonError | null = null;
  #opening: PendingStoreCall | null = null;
  #closing: PendingStoreCall | null = null;

  private constructor(dataDir: string, hooks: TopicStoreHooks) {
    this.#dataDir = dataDir;
    this.#hooks = hooks;
    const { port1, port2 } = new MessageChannel();
    this.#requests = port1;
    this.#worker = new Worker(new URL("./topic_store_worker.ts", import.meta.url), {
      workerData: port2,
      transferList: [port2],
    });
    this.#checkpointer = new Worker(new URL("./topic_store_checkpoint_worker.ts", import.meta.url));
    this.#worker.on("message", (reply: TopicStoreReply) => this.#received(reply));
    this.#worker.on("error", (error) => this.#break(this.#ioError(error.message)));
    this.#worker.on("exit", () => this.#break(this.#ioError("its thread ended")));
    this.#checkpointer.on("message", () => this.#post({ kind: "checkpointed" }));
    // Without it the committing thread copies the log itself, later.
    this.#checkpointer.on("error", () => {});
  }

  /**
   * Takes a data directory into possession; makes it when it is not there. Rejects with LOCK_BUSY when another server uses
   * it, with CONFIG when another version wrote it, with IO when it cannot be read or written, also where its log is damaged, unless
   * that is accepted.
   */
  static async open(
    dataDir: string,
    hooks: TopicStoreHooks,
    { acceptDamagedLog = false, ...options }: Partial<StoreOptions> & { readonly acceptDamagedLog?: boolean } = {},
  ): Promise<TopicStore> {
    const store = new TopicStore(dataDir, hooks);
    try {
      await new Promise((done, failed) => {
        store.#opening = { done, failed };
        store.#post({ kind: "open", dataDir, options: { ...defaultStoreOptions, ...options }, acceptDamagedLog });
      });
      return store;
    } catch (error) {
      await store.#end();
      throw error;
    }
  }

  /**
   * Takes an operation; its response comes by the hook. false: too much is under way, nothing was taken, and the client is to
   * be told OVERLOADED. Throws when the store is broken. A ticket must not be in use.
   */
  submit(operation: ClientOperation): boolean {
    if (this.#broken !== null) throw this.#broken;
    const waits = operation.kind === "get" && operation.wait;
    const bytes = waits ? 0 : bytesOf(operation);
    if (waits ? this.#waitingGets >= waitingGetsMax : this.#tickets.size - this.#waitingGets >= operationsMax) {
      return false;
    }
    if (this.#bytes > 0 && this.#bytes + bytes > operationBytesMax) return false;
    this.#tickets.set(operation.ticket, waits ? -1 : bytes);
    if (waits) this.#waitingGets++;
    this.#bytes += bytes;
    this.#packer.add(operation);
    if (this.#packer.count >= batchOperations || this.#packer.byteLength >= batchBytes) this.#postBatch();
    else this.#schedule();
    return true;
  }

  /** Nobody waits for this get any more: it is answered at once, unless it was before. */
  cancel(ticket: number): void {
    if (this.#broken !== null || !this.#tickets.has(ticket)) return;
    this.#packer.add({ kind: "cancel", of: ticket });
    this.#schedule();
  }

  /** Names the store for as long as it lives: random, made with it. */
  get storeId(): string {
    return this.#storeId;
  }

  /** Operations under way, waiting gets included. */
  get inFlight(): number {
    return this.#tickets.size;
  }

  /** Of two copies of a store the newer one's is greater, if something was stored in between and the age was raised since. */
  generation(): Promise<number> {
    return this.#call("generation");
  }

  /** Raises it, durably, above `above`. Null, and nothing is done, where nothing was stored since and `above` is 0. */
  raiseGeneration(above = 0): Promise<number | null> {
    return this.#call("raiseGeneration", above);
  }

  /** Topics with a copy, or with something staged. */
  topics(): Promise<string[]> {
    return this.#call("topicNames");
  }

  copiesOf(topic: string): Promise<TopicCopies> {
    return this.#call("copiesOf", topic);
  }

  /** An open topic without messages, whose first id is baseOffset + 1. Rejects with STALE_TOKEN when another one is here. */
  create(topic: string, copy: Omit<TopicCopy, "sealedFor">): Promise<void> {
    return this.#call("create", topic, copy);
  }

  /** Nothing more is done at the topic in this epoch, durably. What was submitted before is done. */
  seal(topic: string, epoch: number, to: string): Promise<void> {
    return this.#call("seal", topic, epoch, to);
  }

  /** Opens the own sealed copy, or what was staged in the place of any copy, at this epoch. Rejects with STALE_TOKEN, NOT_HELD. */
  activate(topic: string, epoch: number, what: "copy" | "staged"): Promise<void> {
    return this.#call("activate", topic, epoch, what);
  }

  /** Removes the copy if it is of an epoch before this one, and remembers its incarnation with this epoch. */
  drop(topic: string, epoch: number): Promise<void> {
    return this.#call("drop", topic, epoch);
  }

  /** For a store that was put back: messages are numbered from behind `baseOffset` on. Rejects with NOT_HELD. */
  continueBehind(topic: string, baseOffset: number): Promise<void> {
    return this.#call("continueBehind", topic, baseOffset);
  }

  /** Removes what is staged. */
  discard(topic: string): Promise<void> {
    return this.#call("discard", topic);
  }

  /** Puts the copy where nothing responses from it and an operator finds it. */
  setAside(topic: string): Promise<void> {
    return this.#call("setAside", topic);
  }

  /**
   * The copy of this epoch, in pieces of about 1 MiB, to be read once. An open one's messages go ahead, and it is sealed by
   * `seal` when hardly any are left. Null between pieces: what was given before has to arrive first, so that little is left.
   */
  export(topic: string, epoch: number, seal: () => Promise<void>): OutgoingContent {
    let hash = "";
    return { pieces: this.#pieces(topic, epoch, { seal, done: (digest) => hash = digest }), hash: () => hash };
  }

  /** Stages what another server has sealed. Rejects with BAD_DATA or PROTOCOL, and stages nothing, when it is not whole. */
  async importStaged(topic: string, content: ContentName, { pieces, hash }: IncomingContent): Promise<void> {
    const transfer = await this.#call("importBegin", topic, content);
    let isDone = false;
    try {
      // Without what else came in the same buffer: that would be copied along.
      for await (const piece of pieces) await this.#call("importPiece", transfer, piece.slice());
      await this.#call("importDone", transfer, hash());
      isDone = true;
    } finally {
      if (!isDone && this.#broken === null) await this.#call("importEnd", transfer);
    }
  }

  async *#pieces(topic: string, epoch: number, { seal, done }: {
    readonly seal: () => Promise<void>;
    readonly done: (hash: string) => void;
  }): AsyncGenerator<Uint8Array | null, void, void> {
    const transfer = await this.#call("exportBegin", topic, epoch);
    try {
      for (let rounds = 0, bytes = 0;;) {
        const { piece, isCaughtUp, hash } = await this.#call("exportNext", transfer);
        if (hash !== null) return done(hash);
        if (piece !== null) yield piece;
        bytes += piece?.byteLength ?? 0;
        if (!isCaughtUp) continue;
        if (bytes <= sealBelowBytes || rounds++ === roundsBeforeSealMax) await seal();
        else yield null;
        bytes = 0;
      }
    } finally {
      if (this.#broken === null) await this.#call("exportEnd", transfer);
    }
  }

  /** What an operator does. All reject with STALE_TOKEN when the topic is not served here in this epoch. */
  show(topic: string, epoch: number): Promise<TopicDetails> {
    return this.#call("show", topic, epoch);
  }

  forgetClient(topic: string, epoch: number, client: string, acceptsLoss: boolean): Promise<void> {
    return this.#call("forgetClient", topic, epoch, client, acceptsLoss);
  }

  repair(topic: string, epoch: number): Promise<string[]> {
    return this.#call("repair", topic, epoch);
  }

  /** What is here of each topic that has a copy. */
  summaries(): Promise<ReturnType<TopicStoreCalls["summaries"]>> {
    return this.#call("summaries");
  }

  statistics(): Promise<ReturnType<TopicStoreCalls["statistics"]>> {
    return this.#call("statistics");
  }

  /** Gives the data directory up, after everything that was submitted is done. Gets that wait are not answered. */
  async close(): Promise<void> {
    if (this.#broken === null) {
      await new Promise((done) => {
        this.#closing = { done, failed: done };
        if (this.#packer.count > 0) this.#postBatch();
        this.#post({ kind: "close" });
      });
    }
    await this.#end();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #schedule(): void {
    if (this.#isScheduled || this.#batches >= batchesMax) return;
    this.#isScheduled = true;
    // After what is in this turn of the loop: a read from a socket brings many requests.
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

  #call<Name extends keyof TopicStoreCalls>(
    method: Name,
    ...values: StoreCallArguments<Name>
  ): Promise<ReturnType<TopicStoreCalls[Name]>> {
    if (this.#broken !== null) return Promise.reject(this.#broken);
    // What was submitted before comes before.
    if (this.#packer.count > 0) this.#postBatch();
    return new Promise((resolve, failed) => {
      const id = this.#nextCall++;
      this.#pendingCalls.set(id, { done: (value) => resolve(value as ReturnType<TopicStoreCalls[Name]>), failed });
      this.#post({ kind: "call", id, method, values });
    });
  }

  #received(reply: TopicStoreReply): void {
    switch (reply.kind) {
      case "responses":
        this.#batches -= reply.batches;
        this.#responded(unpackResponses(reply.bytes));
        // What the responses have led to goes along.
        if (this.#packer.count > 0) this.#schedule();
        break;
      case "returned":
      case "refused":
        this.#returned(reply);
        break;
      case "broken":
        this.#break(new BatonError(reply.code, reply.message));
        break;
      case "disk warning":
        this.#hooks.diskWarning?.(reply.sentence);
        break;
      case "damage":
      case "warning":
        this.#hooks[reply.kind]?.(reply.sentence);
        break;
      case "checkpoint":
        this.#checkpointer.postMessage({ dataDir: this.#dataDir });
        break;
      case "opened":
        this.#storeId = reply.storeId;
        this.#opening?.done(undefined);
        this.#opening = null;
        break;
      case "closed":
        this.#closing?.done(undefined);
        break;
    }
  }

  #responded(responses: readonly StoreResponse[]): void {
    if (responses.length === 0) return;
    for (const { ticket } of responses) {
      const bytes = this.#tickets.get(ticket) ?? 0;
      this.#tickets.delete(ticket);
      if (bytes < 0) this.#waitingGets--;
      else this.#bytes -= bytes;
    }
    this.#hooks.responded(responses);
  }

  #returned(reply: Extract<TopicStoreReply, { kind: "returned" | "refused" }>): void {
    const waiting = this.#pendingCalls.get(reply.id);
    this.#pendingCalls.delete(reply.id);
    if (reply.kind === "returned") waiting?.done(reply.value);
    else waiting?.failed(new BatonError(reply.code, reply.message));
  }

  #break(error: BatonError): void {
    if (this.#broken !== null) return;
    this.#broken = error;
    for (const { failed } of this.#pendingCalls.values()) failed(error);
    this.#pendingCalls.clear();
    const opening = this.#opening;
    this.#closing?.failed(error);
    if (opening !== null) opening.failed(error);
    else if (this.#closing === null) this.#hooks.broken(error, [...this.#tickets.keys()]);
    this.#tickets.clear();
  }

  async #end(): Promise<void> {
    this.#broken ??= this.#ioError("it was closed");
    this.#requests.close();
    await Promise.all([this.#worker.terminate(), this.#checkpointer.terminate()]);
  }

  #ioError(message: string): BatonError {
    return new BatonError("IO", `The topic store in ${this.#dataDir} cannot be read or written: ${message}`);
  }
}

function bytesOf(operation: ClientOperation): number {
  if (operation.kind === "get") return getBytesMax(operation);
  if (operation.kind !== "put") return 0;
  let bytes = 0;
  for (const body of operation.bodies) bytes += body.byteLength;
  return bytes;
}
