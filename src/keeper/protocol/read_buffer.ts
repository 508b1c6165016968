/**
 * What came in on one connection and was not looked at yet: bytes in, one frame at a time out, so that whoever sends ten
 * thousand requests at once can be left in the middle of them for the others' sake. Never touches a socket or a clock.
 */
import { JuteFrameDecoder } from "../../wire/jute/jute_frame.ts";

/** Decoded at once; what is left over of it when the turn ends is copied frame by frame. */
const pieceBytes = 4096;

export class ReadBuffer {
  readonly #decoder: JuteFrameDecoder;
  /** Not decoded yet, in order; the first from `#at` on. */
  #chunks: Uint8Array[] = [];
  #offset = 0;
  /** Decoded and not taken, from `#next` on. */
  #frames: Uint8Array[] = [];
  #next = 0;

  constructor(frameBytesMax: number) {
    this.#decoder = new JuteFrameDecoder(frameBytesMax);
  }

  /** Whether there is something to be decoded or taken. */
  get isEmpty(): boolean {
    return this.#next === this.#frames.length && this.#chunks.length === 0;
  }

  /** Bytes held until more comes or somebody takes them. */
  get heldBytes(): number {
    let bytes = this.#decoder.pendingBytes - this.#offset;
    for (const chunk of this.#chunks) bytes += chunk.byteLength;
    for (let index = this.#next; index < this.#frames.length; index++) bytes += this.#frames[index]?.byteLength ?? 0;
    return bytes;
  }

  /** The chunk stays the caller's: before it changes, `keep` has to be called. */
  push(chunk: Uint8Array): void {
    if (chunk.byteLength > 0) this.#chunks.push(chunk);
  }

  /** The next whole frame; null when there is none. Throws PROTOCOL. */
  next(): Uint8Array | null {
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

  /** Nobody will ask for the rest. */
  clear(): void {
    this.#chunks = [];
    this.#frames = [];
    this.#next = 0;
    this.#offset = 0;
  }

  /** Copies what is left. */
  copyRest(): void {
    if (this.isEmpty) return;
    this.#frames = this.#frames.slice(this.#next).map((frame) => frame.slice());
    this.#next = 0;
    this.#chunks = this.#chunks.map((chunk, index) => chunk.slice(index === 0 ? this.#offset : 0));
    this.#offset = 0;
  }
}
