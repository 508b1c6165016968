/** Waits that end with a promise, with a signal, or with the block that started them. */

export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw signal.reason;
}

/**
 * Calls `listener` when the signal aborts, immediately if it has aborted. Returns a function that removes the listener.
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

/** Aborts with the first of these signals that are given. */
export function anyAbortSignal(...signals: readonly (AbortSignal | undefined)[]): AbortSignal {
  return AbortSignal.any(signals.filter((signal) => signal !== undefined));
}

/** Resolves when the signal aborts. */
export function whenAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => onAbort(signal, () => resolve()));
}

/**
 * The promise's result, or a rejection with the signal's reason, whichever comes first. The promise itself is not
 * cancelled.
 */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise<T>((resolve, reject) => {
    const off = onAbort(signal, reject);
    promise.then(resolve, reject).finally(off);
  });
}

/**
 * A set of things that end together, such as the listeners and timers of one wait: declared by `using`, they end with
 * the block.
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

/** Calls in progress, for an owner that has to wait for them before it ends. */
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
