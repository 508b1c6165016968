/** Writes a whole text, or bytes, to a descriptor, also to a pipe that another program has made non-blocking. */
import { writeSync } from "node:fs";
import { errnoOf } from "../errors.ts";

/**
 * Writes all of the text before it returns. Waits for a full non-blocking pipe, 10 s by default. Waiting blocks this process, so
 * use a short limit for output of a command. Throws the system's error.
 */
export function writeWhole(
  fd: number,
  text: string | Uint8Array,
  { fullPipeMsMax = 10_000 }: { fullPipeMsMax?: number } = {},
): void {
  let bytes: Uint8Array = typeof text === "string" ? new TextEncoder().encode(text) : text;
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

/** Blocks this thread. Only for synchronous code that must wait between two attempts. */
export function blockFor(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
