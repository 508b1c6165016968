/** Writes a whole text, or bytes, to a descriptor, also to a pipe that another program has made non-blocking. */
import { writeSync } from "node:fs";
import { errnoName } from "../errors.ts";

/** How long a full pipe is waited for, in milliseconds. */
const fullPipeMsMax = 10_000;

/**
 * Writes all of it before it returns. Waits for a full non-blocking pipe, which blocks this process. Throws the
 * system's error.
 */
export function writeAllBytes(fd: number, content: string | Uint8Array): void {
  let bytes: Uint8Array = typeof content === "string" ? new TextEncoder().encode(content) : content;
  const startMs = performance.now();
  while (bytes.length > 0) {
    try {
      bytes = bytes.subarray(writeSync(fd, bytes));
    } catch (thrown) {
      if (errnoName(thrown) !== "EAGAIN" || performance.now() - startMs > fullPipeMsMax) throw thrown;
      blockThreadFor(5);
    }
  }
}

/** Blocks this thread. Only for synchronous code that must wait between two attempts. */
export function blockThreadFor(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
