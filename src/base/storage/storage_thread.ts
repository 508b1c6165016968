/**
 * Runs a store in its own thread, so that the main thread does not wait for the disk. The main thread makes typed calls
 * through `StorageThread`. In the storage thread, `StorageThreadCallRunner` runs the calls in order. Both classes work
 * for any store that has a table of its calls.
 */
import { type MessagePort, parentPort, receiveMessageOnPort } from "node:worker_threads";
import { BatonError, type ErrorCode } from "../errors.ts";
import { storageError } from "./storage_error.ts";

/** The calls of a store by name. `open` is the first call, `close` the last. */
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

/**
 * A request to the storage thread: a call, several calls that run in one transaction, or a batch of bytes that only the
 * store can read.
 */
type ThreadRequest = ThreadCall | readonly ThreadCall[] | Uint8Array;

/** Work that the store itself schedules. */
type ThreadWork = () => void | Promise<void>;

interface ThreadError {
  readonly code: ErrorCode;
  readonly message: string;
}

interface ThreadResult {
  readonly id: number;
  readonly value?: unknown;
  /** The error of a call that has changed nothing; the store still works. */
  readonly refusal?: ThreadError;
}

/**
 * A message from the storage thread: results, an event of the store, or its failure. After a failure, the outcome of
 * every call without a result is unknown.
 */
type ThreadReply<Event> =
  | ThreadResult
  | readonly ThreadResult[]
  | { readonly event: Event }
  | { readonly broken: ThreadError };

/** The methods of a worker of node:worker_threads that baton uses. A simulation can replace the worker. */
export interface StorageWorker {
  postMessage(request: unknown, transfer?: ArrayBuffer[]): void;
  // deno-lint-ignore no-explicit-any
  on(event: "message" | "error" | "exit", listener: (value: any) => void): unknown;
  terminate(): Promise<unknown>;
}

/** The methods that baton uses of `parentPort`, through which the storage thread talks to the main thread. */
export interface StorageParentPort {
  postMessage(reply: unknown, transfer?: ArrayBuffer[]): void;
  // deno-lint-ignore no-explicit-any
  on(event: "message", listener: (request: any) => void): unknown;
}

/** The main thread's end of a separate port for requests. */
export interface StorageRequestSender {
  postMessage(request: unknown, transfer?: ArrayBuffer[]): void;
  close(): void;
}

/** The storage thread's end of the separate port for requests. */
export interface StorageRequestReceiver {
  // deno-lint-ignore no-explicit-any
  on(event: "message", listener: (request: any) => void): unknown;
  /** Returns a request that has arrived, without waiting for its event; undefined if there is none. */
  take(): unknown;
}

/** Makes a receiver of a port of node:worker_threads. */
export function storageRequestReceiver(port: MessagePort): StorageRequestReceiver {
  return {
    on: (event, listener) => port.on(event, listener),
    take: () => (receiveMessageOnPort(port) as { message: unknown } | undefined)?.message,
  };
}

/** The most calls that run in one transaction. */
const togetherMax = 1024;

export interface StorageThreadHooks<Event> {
  /** The subject of an error message, such as "The topic store in /data". */
  readonly what: string;
  readonly onEvent?: (event: Event) => void;
  /** Called once if the store fails while it is open. All later calls reject with this error. */
  readonly onBroken?: (error: BatonError) => void;
  /** A separate port for requests, for a thread that accepts more batches while it is working. */
  readonly requests?: StorageRequestSender;
}

interface PendingCall {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: BatonError) => void;
}

/**
 * Owns the storage thread. If the store's method throws, the call rejects with that error; after IO, the call's outcome
 * is unknown.
 */
export class StorageThread<Calls extends StorageThreadCalls, Event = never> {
  readonly #worker: StorageWorker;
  readonly #requests: Pick<StorageWorker, "postMessage">;
  readonly #hooks: StorageThreadHooks<Event>;
  readonly #pending = new Map<number, PendingCall>();
  /** Calls that wait until the thread has returned all results. They are then sent together. */
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

  /** Opens the store; must be the first call. If it rejects, the thread has ended. */
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

  /** Ends the thread if `open` is still running; `open` then rejects. */
  stopOpening(): void {
    if (!this.#isOpen) void this.#worker.terminate();
  }

  /** The error with which all calls reject after a failure of the store; null while the store works. */
  get broken(): BatonError | null {
    return this.#broken;
  }

  /** Sends a batch and transfers its memory. The thread answers with events. */
  postBatch(bytes: Uint8Array): void {
    if (this.#broken === null) this.#requests.postMessage(bytes, [bytes.buffer as ArrayBuffer]);
  }

  /** Runs a call after all earlier calls. */
  call<Name extends keyof Calls>(
    method: Name,
    ...values: Parameters<Calls[Name]>
  ): Promise<ReturnType<Calls[Name]>> {
    return this.#call(method, values);
  }

  /**
   * Runs a call like `call`. But calls that are made while the thread is busy are later sent in one message, and run in
   * one transaction. This is faster, because sending a message takes as long as storing one call.
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
    // Waits for the end of this event-loop turn, because a caller that has just got a result often makes another call.
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

export interface StorageThreadCallRunnerOptions<Calls extends StorageThreadCalls> {
  readonly calls: Calls;
  /** Converts an error of a call into the error that the main thread receives. */
  readonly errorOf: (error: unknown) => BatonError;
  /**
   * Returns true if the store can still be used after this error of a call. By default, it can be used after every
   * BatonError except IO.
   */
  readonly isRefusal?: (error: unknown) => boolean;
  /**
   * Runs, in one transaction, calls that were made together. These calls return no promises. If `together` throws a
   * refusal, no call has changed anything; after any other error the store has failed.
   */
  readonly together?: <Result>(work: () => Result) => Result;
  /** Called after the result of a call was sent. */
  readonly after?: (method: keyof Calls) => void;
  /**
   * Answers a call that arrives while the store waits for a database. Returns undefined if the call must wait until the
   * store is ready.
   */
  readonly answerWhileBusy?: (method: keyof Calls) => unknown;
  /** Returns the memory of a result that is transferred to the main thread, not copied. */
  readonly buffersOf?: (value: unknown) => ArrayBuffer[];
  /** The other end of the port for requests, if there is one. */
  readonly requests?: StorageRequestReceiver;
  /** Runs a batch. The function may also take and run more batches from `nextBatch`. */
  readonly onBatch?: (bytes: Uint8Array) => void | Promise<void>;
  readonly parent?: StorageParentPort;
}

/**
 * Runs requests one after the other, in order. If a store uses a database, its calls return promises. If a store uses
 * files, its calls return results, which are sent immediately.
 */
export class StorageThreadCallRunner<Calls extends StorageThreadCalls, Event = never> {
  readonly #options: StorageThreadCallRunnerOptions<Calls>;
  readonly #replies: StorageParentPort;
  /** Requests and work that have not begun, in order. */
  readonly #waiting: (ThreadRequest | ThreadWork)[] = [];
  #isRunning = false;
  #isBroken = false;

  constructor(options: StorageThreadCallRunnerOptions<Calls>) {
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
   * Runs work that the store itself schedules, after all earlier requests. If the work throws, the store has failed,
   * and no further request runs in this thread.
   */
  run(work: ThreadWork): void {
    this.#add(work);
  }

  /** Returns the next request if it has arrived and is a batch; otherwise null. */
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

  /** Runs calls in one transaction. Any error except a refusal of a single call undoes all calls. */
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

  /** Runs a call and returns its result or its refusal. Throws every other error. */
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
