/** Writes all of a text to a descriptor that may be a pipe which another program made non-blocking. */
import { writeSync } from "node:fs";

/**
 * Writes all of it to a descriptor before it returns, whatever the kernel takes at once. A full pipe that somebody made
 * non-blocking is waited for, 10 s when left out; that stops everything else, so that a job's chatter must not wait
 * long. Throws what the kernel says.
 */
export function writeWhole(
  fd: number,
  text: string,
  { fullPipeMsMax = 10_000 }: { fullPipeMsMax?: number } = {},
): void {
  let bytes: Uint8Array = new TextEncoder().encode(text);
  const startMs = performance.now();
  while (bytes.length > 0) {
    try {
      bytes = bytes.subarray(writeSync(fd, bytes));
    } catch (thrown) {
      if (errnoOf(thrown) !== "EAGAIN" || performance.now() - startMs > fullPipeMsMax) throw thrown;
      blockFor(5);
    }
  }
}

/** The name of the system call's error: "EPIPE". Undefined when the value is no error of a system call. */
export function errnoOf(thrown: unknown): string | undefined {
  return (thrown as NodeJS.ErrnoException).code;
}

/** Stops this thread: for code that cannot wait in another way, as between two tries of a call that is synchronous. */
export function blockFor(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
