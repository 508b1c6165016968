/**
 * Messages to stdout: each is with the reader, or in the kernel, when its promise resolves. A reader that takes nothing does not
 * keep a signal from ending the command.
 */
import { fstatSync, write, writeSync } from "node:fs";
import { ReaderGone } from "../../src/terminal/io.ts";
import { BatonError, messageOf } from "../../src/errors.ts";
import { onAbort, throwIfAborted } from "../../src/support/abort.ts";
import { systemClock } from "../../src/support/clock.ts";
import { sleep } from "../../src/support/deadline.ts";

/** After a signal a write that is under way has so long to end: what was written is had, and does not come again. Milliseconds. */
const endingMsMax = 300;
/** Where somebody made the pipe non-blocking, and it is full. */
const fullPipeMs = 5;

export class MessageOutput {
  readonly #end: Uint8Array;
  readonly #signal: AbortSignal;
  /** A file takes at once what it takes. */
  readonly #isFile: boolean;

  /** `end`: behind each message. */
  constructor(end: string, signal: AbortSignal) {
    this.#end = new TextEncoder().encode(end);
    this.#signal = signal;
    this.#isFile = fstatSync(1).isFile();
  }

  /** Rejects with the signal's reason, ReaderGone, or IO. */
  async print(body: Uint8Array): Promise<void> {
    throwIfAborted(this.#signal);
    const bytes = this.#end.byteLength === 0 ? body : Buffer.concat([body, this.#end]);
    for (let at = 0; at < bytes.byteLength;) {
      try {
        at += this.#isFile ? writeSync(1, bytes, at) : await this.#written(bytes, at);
      } catch (thrown) {
        throwIfAborted(this.#signal);
        const { code } = thrown as NodeJS.ErrnoException;
        if (code === "EPIPE") throw new ReaderGone();
        if (code !== "EAGAIN") {
          throw new BatonError("IO", `Cannot write to stdout: ${messageOf(thrown)}`, { cause: thrown });
        }
        await sleep(systemClock(), fullPipeMs, this.#signal);
      }
    }
  }

  /** In a thread: a full pipe stops whoever writes to it. */
  #written(bytes: Uint8Array, at: number): Promise<number> {
    return new Promise((resolve, reject) => {
      let cancel = () => {};
      const off = onAbort(this.#signal, (reason) => {
        cancel = systemClock().after(endingMsMax, () => reject(reason));
      });
      write(1, bytes, at, (error, count) => {
        off();
        cancel();
        if (error === null) resolve(count);
        else reject(error);
      });
    });
  }
}
