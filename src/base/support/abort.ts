/** Helpers for AbortSignal: waits that end with a promise, with a signal, or with the block that started them. */

export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw signal.reason;
}

/**
 * Calls `listener` when the signal aborts, or immediately if it already has. Returns a function that removes the
 * listener.
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

/** Returns a signal that aborts with the first of the given signals. */
export function anyAbortSignal(...signals: readonly (AbortSignal | undefined)[]): AbortSignal {
  return AbortSignal.any(signals.filter((signal) => signal !== undefined));
}

/** Resolves when the signal aborts. */
export function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => onAbort(signal, () => resolve()));
}

/**
 * Waits for the promise, but only until the signal aborts; then rejects with the signal's reason. Does not cancel the
 * promise's work.
 */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise<T>((resolve, reject) => {
    const off = onAbort(signal, reject);
    promise.then(resolve, reject).finally(off);
  });
}

/**
 * Ends several things together, such as the listeners and timers of one wait. If `using` declares it, they end with the
 * block.
 */
export class TaskScope implements Disposable {
  readonly #ends: (() => void)[];
  #isOver = false;

  constructor(...ends: (() => void)[]) {
    this.#ends = ends;
  }

  /** Adds functions that end something. They are called immediately if the scope has ended. */
  add(...ends: (() => void)[]): void {
    this.#ends.push(...ends);
    if (this.#isOver) this[Symbol.dispose]();
  }

  /** Ends everything, in the order in which it was added. */
  [Symbol.dispose](): void {
    this.#isOver = true;
    for (const end of this.#ends.splice(0)) end();
  }
}

/** Tracks calls in progress, for an owner that must wait for them before it ends. */
export class RunningCalls {
  readonly #calls = new Set<Promise<unknown>>();

  /** Runs `work`, and counts it until it has ended. */
  run<T>(work: () => Promise<T>): Promise<T> {
    const call = work().finally(() => this.#calls.delete(call));
    this.#calls.add(call);
    return call;
  }

  /** Resolves when all calls that are in progress now have ended, whatever their outcome. */
  async ended(): Promise<void> {
    await Promise.allSettled(this.#calls);
  }
}
