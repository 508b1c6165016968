/**
 * Runs a store in its own thread, so that the process does not wait for the disk. `StorageThread` is the process's
 * side: typed calls, events, failure, end. `StoragePort` is the thread's side: it runs the calls in order. Neither
 * knows the store; the calls are its interface.
 */
import { type MessagePort, parentPort, receiveMessageOnPort } from "node:worker_threads";
import { BatonError, type ErrorCode } from "../errors.ts";
import { storageError } from "./storage_error.ts";

/** The calls of a store by name. `open` and `close` are the first and the last one. */
export type StorageThreadCalls = {
  // deno-lint-ignore no-explicit-any
  readonly [name: string]: (...values: any[]) => unknown;
} & {
  // deno-lint-ignore no-explicit-any
  readonly open: (...values: any[]) => unknown;
  readonly close: () => void;
};

interface ThreadCall {
  readonly id: number;
  readonly method: PropertyKey;
  readonly values: readonly unknown[];
}

/** A call that runs alone, calls that run together, or a batch that only the store can read. */
type ThreadRequest = ThreadCall | readonly ThreadCall[] | Uint8Array;

interface ThreadError {
  readonly code: ErrorCode;
  readonly message: string;
}

interface ThreadResult {
  readonly id: number;
  readonly value?: unknown;
  /** The call has changed nothing. */
  readonly refusal?: ThreadError;
}

/** Results, an event of the store, or its failure: the outcome of all calls without a result is unknown. */
type ThreadReply<Event> =
  | ThreadResult
  | readonly ThreadResult[]
  | { readonly event: Event }
  | { readonly broken: ThreadError };

/** The parts of a worker that are used here; a worker of node:worker_threads, or what a simulation has in its place. */
export interface StorageWorker {
  postMessage(request: unknown, transfer?: ArrayBuffer[]): void;
  // deno-lint-ignore no-explicit-any
  on(event: "message" | "error" | "exit", listener: (value: any) => void): unknown;
  terminate(): Promise<unknown>;
}

/** The thread's end of a worker: its parentPort. */
export interface StorageParentPort {
  postMessage(reply: unknown, transfer?: ArrayBuffer[]): void;
  // deno-lint-ignore no-explicit-any
  on(event: "message", listener: (request: any) => void): unknown;
}

/** The process's end of a port of its own for requests. */
export interface StorageRequestSender {
  postMessage(request: unknown, transfer?: ArrayBuffer[]): void;
  close(): void;
}

/** The thread's end of that port. */
export interface StorageRequestReceiver {
  // deno-lint-ignore no-explicit-any
  on(event: "message", listener: (request: any) => void): unknown;
  /** Takes a request that has arrived, before its event; undefined if there is none. */
  take(): unknown;
}

/** The receiver at a port of node:worker_threads. */
export function storageRequestReceiver(port: MessagePort): StorageRequestReceiver {
  return {
    on: (event, listener) => port.on(event, listener),
    take: () => (receiveMessageOnPort(port) as { message: unknown } | undefined)?.message,
  };
}

/** The most calls that run together. */
const togetherMax = 1024;

export interface StorageThreadHooks<Event> {
  /** The subject of an error's sentence: "The topic store in /data". */
  readonly what: string;
  readonly onEvent?: (event: Event) => void;
  /** The store has failed while it was open. Called once; every later call is rejected with the error. */
  readonly onBroken?: (error: BatonError) => void;
  /** A port of its own for requests, if the thread takes further batches from it in the middle of its work. */
  readonly requests?: StorageRequestSender;
}

interface PendingCall {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: BatonError) => void;
}

/** Owns the thread. A call is rejected with the error of the store's method; after IO its outcome is unknown. */
export class StorageThread<Calls extends StorageThreadCalls, Event = never> {
  readonly #worker: StorageWorker;
  readonly #requests: Pick<StorageWorker, "postMessage">;
  readonly #hooks: StorageThreadHooks<Event>;
  readonly #pending = new Map<number, PendingCall>();
  /** Calls that wait until the thread has returned all results. */
  #gathered: ThreadCall[] = [];
  #nextId = 0;
  #isOpen = false;
  #broken: BatonError | null = null;

  constructor(worker: StorageWorker, hooks: StorageThreadHooks<Event>) {
    this.#worker = worker;
    this.#requests = hooks.requests ?? worker;
    this.#hooks = hooks;
    worker.on("message", (reply: ThreadReply<Event>) => this.#handleReply(reply));
    worker.on("error", (error) => this.#break(storageError(hooks.what, error)));
    worker.on("exit", () => this.#break(storageError(hooks.what, new Error("its thread ended"))));
  }

  /** Must be the first call. If it is rejected, the thread has ended. */
  async open(...values: Parameters<Calls["open"]>): Promise<ReturnType<Calls["open"]>> {
    try {
      const opened = await this.call("open", ...values);
      this.#isOpen = true;
      return opened;
    } catch (error) {
      await this.#end();
      throw error;
    }
  }

  /** Ends the thread in the middle of `open`, which is then rejected. */
  stopOpening(): void {
    if (!this.#isOpen) void this.#worker.terminate();
  }

  /** Null while the store has not failed and is not closed. */
  get broken(): BatonError | null {
    return this.#broken;
  }

  /** Sends a batch, whose memory is transferred. The thread answers by events. */
  postBatch(bytes: Uint8Array): void {
    if (this.#broken === null) this.#requests.postMessage(bytes, [bytes.buffer as ArrayBuffer]);
  }

  /** Runs after all earlier calls. */
  call<Name extends keyof Calls>(
    method: Name,
    ...values: Parameters<Calls[Name]>
  ): Promise<ReturnType<Calls[Name]>> {
    return this.#call(method, values);
  }

  /**
   * Calls that are made while the thread is busy are sent when it is not, in one message, which costs as much as
   * storing one of them; and they run together.
   */
  callTogether<Name extends keyof Calls>(
    method: Name,
    ...values: Parameters<Calls[Name]>
  ): Promise<ReturnType<Calls[Name]>> {
    return this.#add((id) => {
      this.#gathered.push({ id, method, values });
      if (this.#pending.size === 1) setImmediate(() => this.#sendGathered());
    });
  }

  /** Closes the store after all earlier calls and ends the thread. Rejects if the store could not be closed. */
  async close(): Promise<void> {
    this.#isOpen = false;
    try {
      await this.#call("close", []);
    } finally {
      await this.#end();
    }
  }

  #call<Result>(method: PropertyKey, values: readonly unknown[]): Promise<Result> {
    this.#sendGathered();
    return this.#add((id) => this.#requests.postMessage({ id, method, values }));
  }

  #add<Result>(send: (id: number) => void): Promise<Result> {
    if (this.#broken !== null) return Promise.reject(this.#broken);
    return new Promise((resolve, reject) => {
      const id = this.#nextId++;
      this.#pending.set(id, { resolve: resolve as PendingCall["resolve"], reject });
      send(id);
    });
  }

  #sendGathered(): void {
    const calls = this.#gathered;
    this.#gathered = [];
    if (this.#broken !== null) return;
    for (let at = 0; at < calls.length; at += togetherMax) {
      this.#requests.postMessage(calls.slice(at, at + togetherMax));
    }
  }

  #handleReply(reply: ThreadReply<Event>): void {
    if ("event" in reply) return this.#hooks.onEvent?.(reply.event);
    if ("broken" in reply) return this.#break(new BatonError(reply.broken.code, reply.broken.message));
    if ("id" in reply) this.#settle(reply);
    else for (const result of reply) this.#settle(result);
    // Waits for the end of this turn: callers that just got a result often make another call.
    if (this.#gathered.length > 0 && this.#pending.size === this.#gathered.length) {
      setImmediate(() => this.#sendGathered());
    }
  }

  #settle({ id, value, refusal }: ThreadResult): void {
    const call = this.#pending.get(id);
    this.#pending.delete(id);
    if (refusal === undefined) call?.resolve(value);
    else call?.reject(new BatonError(refusal.code, refusal.message));
  }

  #break(error: BatonError): void {
    if (this.#broken !== null) return;
    this.#broken = error;
    for (const { reject } of this.#pending.values()) reject(error);
    this.#pending.clear();
    if (this.#isOpen) this.#hooks.onBroken?.(error);
  }

  async #end(): Promise<void> {
    this.#isOpen = false;
    this.#break(storageError(this.#hooks.what, new Error("it was closed")));
    await this.#worker.terminate();
  }
}

export interface StoragePortOptions<Calls extends StorageThreadCalls> {
  readonly calls: Calls;
  /** The error as the process gets it. */
  readonly errorOf: (error: unknown) => BatonError;
  /** Whether the store can still be used after this error of a call. Default: every error but IO. */
  readonly isRefusal?: (error: unknown) => boolean;
  /**
   * Runs calls that were made together, in one transaction. If it throws, none of them has changed anything, or the
   * store fails.
   */
  readonly together?: <Result>(work: () => Result) => Result;
  /** Called when the result of a call was sent. */
  readonly after?: (method: keyof Calls) => void;
  /** Memory of a result that is transferred instead of copied. */
  readonly buffersOf?: (value: unknown) => ArrayBuffer[];
  /** The other end of the port for requests, if there is one. */
  readonly requests?: StorageRequestReceiver;
  /** Runs a batch, and those that `nextBatch` returns. */
  readonly onBatch?: (bytes: Uint8Array) => void;
  /** The thread's end of its worker; `parentPort` when left out. */
  readonly parent?: StorageParentPort;
}

export class StoragePort<Calls extends StorageThreadCalls, Event = never> {
  readonly #options: StoragePortOptions<Calls>;
  readonly #replies: StorageParentPort;
  /** A request that followed the batches and is no batch. */
  #heldBack: ThreadRequest | null = null;
  #isBroken = false;

  constructor(options: StoragePortOptions<Calls>) {
    const parent = options.parent ?? parentPort;
    if (parent === null) throw new Error("The storage thread was started as a program");
    this.#options = options;
    this.#replies = parent;
    (options.requests ?? parent).on("message", (request: ThreadRequest) => {
      for (let next: ThreadRequest | null = request; next !== null; next = this.#heldBack) {
        this.#heldBack = null;
        const current = next;
        this.run(() => this.#handleRequest(current));
      }
    });
  }

  emit(event: Event, transfer: ArrayBuffer[] = []): void {
    this.#send({ event }, transfer);
  }

  /**
   * Runs work that no call waits for. If it throws, the store has failed, and nothing runs until another thread opens
   * it.
   */
  run(work: () => void): void {
    if (this.#isBroken) return;
    try {
      work();
    } catch (error) {
      this.#isBroken = true;
      this.#send({ broken: this.#describe(error) });
    }
  }

  /**
   * Returns the next batch that has arrived, keeping the order of requests. Null in a store without a port for
   * requests.
   */
  nextBatch(): Uint8Array | null {
    const { requests } = this.#options;
    if (this.#heldBack !== null || requests === undefined) return null;
    const request = (requests.take() as ThreadRequest | undefined) ?? null;
    if (request instanceof Uint8Array) return request;
    this.#heldBack = request;
    return null;
  }

  #handleRequest(request: ThreadRequest): void {
    if (request instanceof Uint8Array) return this.#options.onBatch?.(request);
    if (!("id" in request)) return this.#runTogether(request);
    const result = this.#resultOf(request);
    this.#send(result, this.#options.buffersOf?.(result.value));
    this.#options.after?.(request.method as keyof Calls);
  }

  /** An error that is no refusal undoes all of the calls. */
  #runTogether(calls: readonly ThreadCall[]): void {
    const { together = (work) => work() } = this.#options;
    let results: ThreadResult[];
    try {
      results = together(() => calls.map((call) => this.#resultOf(call)));
    } catch (error) {
      if (!this.#isRefusal(error)) throw error;
      const refusal = this.#describe(error);
      results = calls.map(({ id }) => ({ id, refusal }));
    }
    this.#send(results, results.flatMap(({ value }) => this.#options.buffersOf?.(value) ?? []));
  }

  /** Throws what is no refusal. */
  #resultOf({ id, method, values }: ThreadCall): ThreadResult {
    try {
      return { id, value: (this.#options.calls[method as string] as Calls[string])(...values) };
    } catch (error) {
      if (!this.#isRefusal(error)) throw error;
      return { id, refusal: this.#describe(error) };
    }
  }

  #isRefusal(error: unknown): boolean {
    return this.#options.isRefusal?.(error) ?? (error instanceof BatonError && error.code !== "IO");
  }

  #describe(error: unknown): ThreadError {
    const { code, message } = this.#options.errorOf(error);
    return { code, message };
  }

  #send(reply: ThreadReply<Event>, transfer: ArrayBuffer[] = []): void {
    this.#replies.postMessage(reply, transfer);
  }
}
