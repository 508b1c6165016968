/** Writes a text or bytes completely to a descriptor, even to a pipe that another program has made non-blocking. */
import { writeSync } from "node:fs";
import { errnoName } from "../errors.ts";

/** The longest time to wait for the reader of a full pipe, in milliseconds. */
const fullPipeMsMax = 10_000;

/** Writes everything before it returns. Blocks this process while a pipe is full. Throws system errors. */
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

/** Blocks this thread for a time in milliseconds. Only for synchronous code that must wait between two attempts. */
export function blockThreadFor(milliseconds: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds);
}
