/** Stops this thread: for code that cannot wait in another way, as between two tries of a call that is synchronous. */
export function blockFor(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
