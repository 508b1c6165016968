/** Waiting that ends with a promise or with a signal. */

export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw signal.reason;
}

/** Calls `listener` when the signal aborts, immediately if it has aborted. Returns a function that removes the listener. */
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

/** The promise's result, or a rejection with the signal's reason, whichever comes first. The promise itself is not cancelled. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise<T>((resolve, reject) => {
    const off = onAbort(signal, reject);
    promise.then(resolve, reject).finally(off);
  });
}
