/**
 * Sends the body of a response, and pauses while the client reads slowly. Closes the connection of a client that is too
 * slow.
 */
import type { ServerResponse } from "node:http";
import { anyAbortSignal, rejectOnAbort, throwIfAborted } from "../support/abort.ts";
import type { Clock } from "../support/clock.ts";
import { formatDuration } from "../support/duration.ts";

export interface HttpResponseStreamLimits {
  /** How long the client may take to read the bytes that were written, in milliseconds. */
  readonly sendMsMax: number;
  /** The most bytes that may be written and not yet read by the client. */
  readonly unsentBytesMax: number;
}

const pieceBytes = 64 << 10;

export interface HttpResponseStreamOptions {
  /** Aborts when the connection is closed; the stream aborts it when the client is too slow. */
  readonly connection: AbortController;
  /** Aborts when the listener closes. */
  readonly ending: AbortSignal;
  readonly limits: HttpResponseStreamLimits;
  readonly clock: Clock;
}

export class HttpResponseStream {
  /** Aborts when the client has closed the connection, is too slow, or the listener closes. */
  readonly signal: AbortSignal;
  readonly #response: ServerResponse;
  readonly #options: HttpResponseStreamOptions;
  /** Resolves when the client has read the bytes that were written; null if all were read. */
  #draining: Promise<void> | null = null;

  constructor(response: ServerResponse, options: HttpResponseStreamOptions) {
    this.#response = response;
    this.#options = options;
    this.signal = anyAbortSignal(options.connection.signal, options.ending);
  }

  get unsentBytes(): number {
    return this.#response.writableLength;
  }

  /**
   * Sends bytes, or a text in UTF-8. The caller must not change the bytes afterwards. Resolves when more may be
   * written. Closes the connection if the caller does not wait and exceeds `unsentBytesMax`. Rejects with the signal's
   * reason.
   */
  async write(chunk: string | Uint8Array): Promise<void> {
    throwIfAborted(this.signal);
    const { unsentBytesMax } = this.#options.limits;
    if (!this.#response.write(chunk)) this.#draining ??= this.#drain();
    if (this.unsentBytes > unsentBytesMax) this.#giveUp(`more than ${unsentBytesMax} bytes are unsent`);
    if (this.#draining !== null) await rejectOnAbort(this.#draining, this.signal);
    throwIfAborted(this.signal);
  }

  /** Sends a body of any size in pieces, each with its own time limit. Continues to send while the listener closes. */
  async writeAll(bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.byteLength; at += pieceBytes) {
      throwIfAborted(this.#options.connection.signal);
      if (!this.#response.write(bytes.subarray(at, at + pieceBytes))) await this.#drain();
    }
  }

  /** Ends the response. Resolves when the kernel has taken all bytes; rejects if the connection is closed before. */
  async end(): Promise<void> {
    throwIfAborted(this.#options.connection.signal);
    await this.#inTime(new Promise((resolve) => this.#response.end(() => resolve())));
  }

  #drain(): Promise<void> {
    const drained = new Promise<void>((resolve) => this.#response.once("drain", resolve));
    return this.#inTime(drained).finally(() => this.#draining = null);
  }

  async #inTime(done: Promise<void>): Promise<void> {
    const { limits: { sendMsMax }, clock, connection } = this.#options;
    const cancel = clock.startTimer(
      sendMsMax,
      () => this.#giveUp(`it has read nothing for ${formatDuration(sendMsMax)}`),
    );
    try {
      await rejectOnAbort(done, connection.signal);
    } finally {
      cancel();
    }
  }

  #giveUp(why: string): void {
    this.#options.connection.abort(new Error(`the client reads too slowly: ${why}`));
    this.#response.destroy();
  }
}
