/**
 * Helpers for AbortSignal: wait until a signal aborts, and end what was started when a signal aborts or a block ends.
 */

export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw signal.reason;
}

/**
 * Calls `listener` when the signal aborts, or immediately if it has aborted already. Returns the function that removes
 * the listener.
 */
export function onAbort(signal: AbortSignal | undefined, listener: (reason: unknown) => void): () => void {
  if (signal === undefined) return () => {};
  if (signal.aborted) {
    listener(signal.reason);
    return () => {};
  }
  const listen = () => listener(signal.reason);
  signal.addEventListener("abort", listen, { once: true });
  return () => signal.removeEventListener("abort", listen);
}

/** Returns a signal that aborts when the first of the given signals aborts. */
export function anyAbortSignal(...signals: readonly (AbortSignal | undefined)[]): AbortSignal {
  return AbortSignal.any(signals.filter((signal) => signal !== undefined));
}

export function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => onAbort(signal, () => resolve()));
}

/**
 * Waits for the promise. If the signal aborts first, rejects with the signal's reason; the work behind the promise
 * continues.
 */
export function rejectOnAbort<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise<T>((resolve, reject) => {
    const off = onAbort(signal, reject);
    promise.then(resolve, reject).finally(off);
  });
}

/**
 * Ends several things together, such as the listeners and timers of one wait. If `using` declares the scope, they end
 * with the block.
 */
export class CleanupScope implements Disposable {
  readonly #ends: (() => void)[];
  #isOver = false;

  constructor(...ends: (() => void)[]) {
    this.#ends = ends;
  }

  /** Adds functions that end something. If the scope has already ended, calls the functions immediately. */
  add(...ends: (() => void)[]): void {
    this.#ends.push(...ends);
    if (this.#isOver) this[Symbol.dispose]();
  }

  /** Calls all added functions, in the order in which they were added. */
  [Symbol.dispose](): void {
    this.#isOver = true;
    for (const end of this.#ends.splice(0)) end();
  }
}

/** Tracks calls in progress, for an owner that must wait for its calls before it ends. */
export class RunningCalls {
  readonly #calls = new Set<Promise<unknown>>();

  /** Runs `work`, which is in progress until its promise settles. */
  run<T>(work: () => Promise<T>): Promise<T> {
    const call = work().finally(() => this.#calls.delete(call));
    this.#calls.add(call);
    return call;
  }

  /** Resolves when all calls that are in progress now have succeeded or failed. */
  async ended(): Promise<void> {
    await Promise.allSettled(this.#calls);
  }
}
