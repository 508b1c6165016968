/**
 * Holds the received bytes of one connection until they are handled. Returns one frame at a time, so that the keeper
 * can serve other clients between two requests of a busy client. Uses no socket and no clock.
 */
import { JuteFrameDecoder } from "../../../base/wire/length_frame.ts";

/**
 * How many bytes are decoded at a time. The number is small, because unhandled frames of these bytes are copied one by
 * one.
 */
const pieceBytes = 4096;

export class KeeperReadBuffer {
  readonly #decoder: JuteFrameDecoder;
  /** Chunks to decode, in order. The first `#offset` bytes of the first chunk are already decoded. */
  #chunks: Uint8Array[] = [];
  #offset = 0;
  /** Decoded frames. Frames before index `#next` have been handled. */
  #frames: Uint8Array[] = [];
  #next = 0;

  constructor(frameBytesMax: number) {
    this.#decoder = new JuteFrameDecoder(frameBytesMax);
  }

  /** True if nothing is left to decode or handle. */
  get isEmpty(): boolean {
    return this.#next === this.#frames.length && this.#chunks.length === 0;
  }

  /** The number of bytes in incomplete or unhandled frames. */
  get heldBytes(): number {
    let bytes = this.#decoder.pendingBytes - this.#offset;
    for (const chunk of this.#chunks) bytes += chunk.byteLength;
    for (let index = this.#next; index < this.#frames.length; index++) bytes += this.#frames[index]?.byteLength ?? 0;
    return bytes;
  }

  /** Adds a chunk without copying it. The caller must call `copyRest` before it reuses the chunk's memory. */
  push(chunk: Uint8Array): void {
    if (chunk.byteLength > 0) this.#chunks.push(chunk);
  }

  /** Returns the next complete frame, or null. Throws PROTOCOL for an invalid frame length. */
  nextFrame(): Uint8Array | null {
    for (;;) {
      const frame = this.#frames[this.#next];
      if (frame !== undefined) {
        this.#next++;
        return frame;
      }
      const [chunk] = this.#chunks;
      if (chunk === undefined) {
        this.#frames = [];
        this.#next = 0;
        return null;
      }
      const piece = chunk.subarray(this.#offset, this.#offset + pieceBytes);
      this.#offset += piece.byteLength;
      if (this.#offset === chunk.byteLength) {
        this.#chunks.shift();
        this.#offset = 0;
      }
      this.#frames = [...this.#decoder.push(piece)];
      this.#next = 0;
    }
  }

  clear(): void {
    this.#chunks = [];
    this.#frames = [];
    this.#next = 0;
    this.#offset = 0;
  }

  /** Copies the unhandled bytes, so that the caller may reuse the chunks. */
  copyRest(): void {
    if (this.isEmpty) return;
    this.#frames = this.#frames.slice(this.#next).map((frame) => frame.slice());
    this.#next = 0;
    this.#chunks = this.#chunks.map((chunk, index) => chunk.slice(index === 0 ? this.#offset : 0));
    this.#offset = 0;
  }
}
