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

/** Work of the store itself. */
type ThreadWork = () => void | Promise<void>;

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
   * Runs calls that were made together, in one transaction; none of them returns a promise. If it throws, none of them
   * has changed anything, or the store fails.
   */
  readonly together?: <Result>(work: () => Result) => Result;
  /** Called when the result of a call was sent. */
  readonly after?: (method: keyof Calls) => void;
  /** Answers a call that arrives while the store waits for a database; undefined if it has to wait for its turn. */
  readonly answerWhileBusy?: (method: keyof Calls) => unknown;
  /** Memory of a result that is transferred instead of copied. */
  readonly buffersOf?: (value: unknown) => ArrayBuffer[];
  /** The other end of the port for requests, if there is one. */
  readonly requests?: StorageRequestReceiver;
  /** Runs a batch, and those that `nextBatch` returns. */
  readonly onBatch?: (bytes: Uint8Array) => void | Promise<void>;
  /** The thread's end of its worker; `parentPort` when left out. */
  readonly parent?: StorageParentPort;
}

/**
 * Runs requests one after the other, in order. A store that waits for a database returns promises; a store in files
 * returns results, which are sent in the same turn.
 */
export class StoragePort<Calls extends StorageThreadCalls, Event = never> {
  readonly #options: StoragePortOptions<Calls>;
  readonly #replies: StorageParentPort;
  /** Requests and work that have arrived and not begun, in order. */
  readonly #waiting: (ThreadRequest | ThreadWork)[] = [];
  #isRunning = false;
  #isBroken = false;

  constructor(options: StoragePortOptions<Calls>) {
    const parent = options.parent ?? parentPort;
    if (parent === null) throw new Error("The storage thread was started as a program");
    this.#options = options;
    this.#replies = parent;
    (options.requests ?? parent).on("message", (request: ThreadRequest) => {
      if (!this.#isRunning || !this.#answerWhileBusy(request)) this.#add(request);
    });
  }

  emit(event: Event, transfer: ArrayBuffer[] = []): void {
    this.#send({ event }, transfer);
  }

  /**
   * Runs work that no call waits for, in its turn. If it throws, the store has failed, and nothing runs until another
   * thread opens it.
   */
  run(work: ThreadWork): void {
    this.#add(work);
  }

  /** Returns the next batch if it is the next request that has arrived. */
  nextBatch(): Uint8Array | null {
    if (this.#waiting.length === 0) {
      const request = this.#options.requests?.take() as ThreadRequest | undefined;
      if (request !== undefined) this.#waiting.push(request);
    }
    if (!(this.#waiting[0] instanceof Uint8Array)) return null;
    return this.#waiting.shift() as Uint8Array;
  }

  #add(next: ThreadRequest | ThreadWork): void {
    this.#waiting.push(next);
    if (!this.#isRunning) this.#runWaiting();
  }

  #runWaiting(): void {
    this.#isRunning = true;
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift()) {
      const running = this.#begin(next);
      if (!(running instanceof Promise)) continue;
      void running.catch((error) => this.#break(error)).then(() => this.#runWaiting());
      return;
    }
    this.#isRunning = false;
  }

  #begin(next: ThreadRequest | ThreadWork): void | Promise<void> {
    if (this.#isBroken) return;
    try {
      return typeof next === "function" ? next() : this.#handleRequest(next);
    } catch (error) {
      this.#break(error);
    }
  }

  #break(error: unknown): void {
    this.#isBroken = true;
    this.#send({ broken: this.#describe(error) });
  }

  #answerWhileBusy(request: ThreadRequest): boolean {
    if (!("method" in request)) return false;
    const value = this.#options.answerWhileBusy?.(request.method as keyof Calls);
    if (value !== undefined) this.#send({ id: request.id, value });
    return value !== undefined;
  }

  #handleRequest(request: ThreadRequest): void | Promise<void> {
    if (request instanceof Uint8Array) return this.#options.onBatch?.(request);
    if (!("id" in request)) return this.#runTogether(request);
    const answer = (result: ThreadResult) => {
      this.#send(result, this.#options.buffersOf?.(result.value));
      this.#options.after?.(request.method as keyof Calls);
    };
    const result = this.#resultOf(request);
    return result instanceof Promise ? result.then(answer) : answer(result);
  }

  /** An error that is no refusal undoes all of the calls. */
  #runTogether(calls: readonly ThreadCall[]): void {
    const { together = (work) => work() } = this.#options;
    let results: ThreadResult[];
    try {
      results = together(() => calls.map((call) => this.#resultOf(call) as ThreadResult));
    } catch (error) {
      if (!this.#isRefusal(error)) throw error;
      const refusal = this.#describe(error);
      results = calls.map(({ id }) => ({ id, refusal }));
    }
    this.#send(results, results.flatMap(({ value }) => this.#options.buffersOf?.(value) ?? []));
  }

  /** Throws what is no refusal. */
  #resultOf({ id, method, values }: ThreadCall): ThreadResult | Promise<ThreadResult> {
    const refuse = (error: unknown) => {
      if (!this.#isRefusal(error)) throw error;
      return { id, refusal: this.#describe(error) };
    };
    try {
      const value = (this.#options.calls[method as string] as Calls[string])(...values);
      return value instanceof Promise ? value.then((found: unknown) => ({ id, value: found }), refuse) : { id, value };
    } catch (error) {
      return refuse(error);
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
