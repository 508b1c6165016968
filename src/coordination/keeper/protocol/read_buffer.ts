/**
 * The bytes of one connection that were received and not handled. Returns one frame at a time, so that a client that
 * sends ten thousand requests can be interrupted for the others. Uses no socket and no clock.
 */
import { JuteFrameDecoder } from "../../../base/wire/length_frame.ts";

/** Bytes decoded at a time. Frames that are left over from them are copied one by one. */
const pieceBytes = 4096;

export class KeeperReadBuffer {
  readonly #decoder: JuteFrameDecoder;
  /** Chunks that are not decoded, in order; the first one from `#offset` on. */
  #chunks: Uint8Array[] = [];
  #offset = 0;
  /** Decoded frames that are not handled, from `#next` on. */
  #frames: Uint8Array[] = [];
  #next = 0;

  constructor(frameBytesMax: number) {
    this.#decoder = new JuteFrameDecoder(frameBytesMax);
  }

  /** Whether nothing is left to decode or handle. */
  get isEmpty(): boolean {
    return this.#next === this.#frames.length && this.#chunks.length === 0;
  }

  /** Bytes held until more input comes or the frames are handled. */
  get heldBytes(): number {
    let bytes = this.#decoder.pendingBytes - this.#offset;
    for (const chunk of this.#chunks) bytes += chunk.byteLength;
    for (let index = this.#next; index < this.#frames.length; index++) bytes += this.#frames[index]?.byteLength ?? 0;
    return bytes;
  }

  /** Adds a chunk without copying it. Call `copyRest` before the caller reuses the chunk. */
  push(chunk: Uint8Array): void {
    if (chunk.byteLength > 0) this.#chunks.push(chunk);
  }

  /** The next complete frame; null when there is none. Throws PROTOCOL. */
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

  /** Copies what is left of the chunks. */
  copyRest(): void {
    if (this.isEmpty) return;
    this.#frames = this.#frames.slice(this.#next).map((frame) => frame.slice());
    this.#next = 0;
    this.#chunks = this.#chunks.map((chunk, index) => chunk.slice(index === 0 ? this.#offset : 0));
    this.#offset = 0;
  }
}
