/** Reads the body of a request within its time limit and the memory budget. While there is no memory, pauses. */
import type { IncomingMessage } from "node:http";
import { onAbort } from "../../base/support/abort.ts";
import type { Clock } from "../../base/support/clock.ts";
import type { RequestBudget, RequestMemoryShare } from "./request_budget.ts";

export type RequestBody =
  | { readonly kind: "complete"; readonly body: Uint8Array }
  /** The body was not read to its end. */
  | { readonly kind: "too_large" | "late" | "no_memory" | "ending" }
  | { readonly kind: "left"; readonly bytes: number; readonly why: string };

export interface RequestBodyOptions {
  readonly budget: RequestBudget;
  /** The size of the head in bytes. The head counts towards the memory, like the body. */
  readonly headBytes: number;
  readonly bytesMax: number;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly ending: AbortSignal;
}

export class RequestBodyReader {
  readonly share: RequestMemoryShare;
  readonly #request: IncomingMessage;
  readonly #options: RequestBodyOptions;
  /** The announced Content-Length; null for a body in chunks. */
  readonly #length: number | null;
  readonly #read = Promise.withResolvers<RequestBody>();
  /** The received data: either the chunks as they arrived, or a single buffer of the announced length. */
  #chunks: Buffer[] = [];
  #bytes = 0;
  #isSettled = false;

  constructor(request: IncomingMessage, options: RequestBodyOptions) {
    this.#request = request;
    this.#options = options;
    const { budget, headBytes, bytesMax } = options;
    const announced = request.headers["content-length"];
    const isChunked = request.headers["transfer-encoding"] !== undefined;
    this.#length = isChunked ? null : Number(announced ?? 0);
    const left = this.#length ?? bytesMax;
    this.share = budget.openShare({ bytes: headBytes, left }, {
      pause: () => void request.pause(),
      resume: () => void request.resume(),
      refuse: () => this.#settle({ kind: "no_memory" }),
    });
  }

  /** Reads the body. Never rejects. */
  async read(): Promise<RequestBody> {
    const request = this.#request;
    const { budget, bytesMax, timeoutMs, clock, ending } = this.#options;
    const cancel = clock.startTimer(timeoutMs, () => this.#settle({ kind: this.share.isRead ? "late" : "no_memory" }));
    const off = onAbort(ending, () => this.#settle({ kind: "ending" }));
    const left = (error?: Error) => {
      this.#settle({ kind: "left", bytes: this.#bytes, why: error?.message ?? "the connection was closed" });
    };
    const data = (chunk: Buffer) => this.#receiveChunk(chunk);
    const end = () => this.#settle({ kind: "complete", body: this.#joinChunks() });
    request.on("error", left).on("close", left);
    if (this.#length !== null && this.#length > bytesMax) this.#settle({ kind: "too_large" });
    // Attaching these handlers does not resume a request that the budget has paused.
    else request.on("end", end).on("data", data);
    try {
      return await this.#read.promise;
    } finally {
      cancel();
      off();
      request.off("data", data).off("end", end).off("close", left);
      budget.finishReading(this.share);
    }
  }

  /** Frees the memory. A second call changes nothing. */
  release(): void {
    this.#options.budget.release(this.share);
  }

  #receiveChunk(chunk: Buffer): void {
    if (this.#isSettled) return;
    this.#bytes += chunk.byteLength;
    if (this.#bytes > this.#options.bytesMax) return this.#settle({ kind: "too_large" });
    this.#keepChunk(chunk);
    this.#options.budget.addReceived(this.share, chunk.byteLength);
  }

  #keepChunk(chunk: Buffer): void {
    const length = this.#length;
    if (length === null || chunk.byteLength === length) return void this.#chunks.push(chunk);
    // The buffer takes little memory at first, because the system provides a page only when data is written to it.
    if (this.#chunks.length === 0) this.#chunks.push(Buffer.allocUnsafeSlow(length));
    this.#chunks[0]?.set(chunk, this.#bytes - chunk.byteLength);
  }

  #settle(read: RequestBody): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#chunks = [];
    this.#read.resolve(read);
    if (read.kind !== "complete") this.#request.pause();
  }

  #joinChunks(): Uint8Array {
    const [only] = this.#chunks;
    const body = this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks);
    return new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
  }
}
