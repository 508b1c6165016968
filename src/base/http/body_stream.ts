/**
 * The body of a response, as it arrives. What has arrived is given before the error that cut it off. A sender that is
 * faster than the reader has to wait.
 */
import type { IncomingMessage } from "node:http";

/** Bytes that are read ahead. */
const aheadBytesMax = 256 << 10;

export class BodyStream implements AsyncIterable<Uint8Array> {
  readonly #message: IncomingMessage;
  readonly #onEnd: () => void;
  #chunks: Uint8Array[] = [];
  #bytes = 0;
  /** Null: it goes on; "end": it is complete. */
  #end: "end" | { readonly error: unknown } | null = null;
  #wake: () => void = () => {};
  #why: Error | null = null;

  /** `onEnd`: called once, when nothing more will arrive. */
  constructor(message: IncomingMessage, onEnd: () => void) {
    this.#message = message;
    this.#onEnd = onEnd;
    message.on("data", (chunk: Uint8Array) => this.#receive(chunk));
    const broken = () => this.fail(this.#why ?? new Error("the connection was closed"));
    const { "content-length": length, "transfer-encoding": coding } = message.headers;
    const endsWithConnection = length === undefined && coding === undefined;
    const isCut = () => !message.complete || (endsWithConnection && this.#why !== null);
    message.on("end", () => isCut() ? broken() : this.#settle("end")).on("error", broken).on("close", broken);
  }

  /** Says why the body will end early. What has arrived before is still given. */
  noteFailure(error: Error): void {
    this.#why = error;
  }

  /** The body ends with this error, unless it has ended. */
  fail(error: unknown): void {
    this.#settle({ error });
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {
    try {
      for (;;) {
        const chunk = this.#chunks.shift();
        if (chunk !== undefined) {
          this.#bytes -= chunk.byteLength;
          if (this.#bytes <= aheadBytesMax / 2) this.#message.resume();
          yield chunk;
        } else if (this.#end === "end") return;
        else if (this.#end !== null) throw this.#end.error;
        else await new Promise<void>((resolve) => this.#wake = resolve);
      }
    } finally {
      this.abandon();
    }
  }

  /** Closes the connection unless the body was read, or has failed. */
  abandon(): void {
    if (this.#end !== "end" || this.#chunks.length > 0) this.#message.destroy();
  }

  #receive(chunk: Uint8Array): void {
    if (this.#end !== null) return;
    this.#chunks.push(chunk);
    if ((this.#bytes += chunk.byteLength) > aheadBytesMax) this.#message.pause();
    this.#wake();
  }

  #settle(end: "end" | { readonly error: unknown }): void {
    if (this.#end !== null) return;
    this.#end = end;
    this.#wake();
    this.#onEnd();
  }
}
