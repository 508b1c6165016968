/** ZooKeeper's frames: a 32-bit length, then the bytes. Uses no socket. */
import { ByteWriter, protocolError, readU32 } from "./bytes.ts";

/** The longest frame by default, in bytes: the default jute.maxbuffer of ZooKeeper servers. */
export const juteFrameBytesMaxDefault = 0xfffff;

/**
 * Splits chunks of a stream into frames. Throws PROTOCOL for a length outside 0…frameBytesMax before allocating memory.
 * Frames are views of their chunk; only a frame that spans several chunks is copied.
 */
export class JuteFrameDecoder {
  readonly #frameBytesMax: number;
  readonly #header = new Uint8Array(4);
  #headerLength = 0;
  #body: Uint8Array | null = null;
  #bodyLength = 0;

  constructor(frameBytesMax = juteFrameBytesMaxDefault) {
    this.#frameBytesMax = frameBytesMax;
  }

  /** The bytes of memory that an incomplete frame uses. */
  get pendingBytes(): number {
    return this.#body?.byteLength ?? 0;
  }

  /** Yields the frames that are complete with this chunk, without their length field. */
  *push(chunk: Uint8Array): Generator<Uint8Array, void, void> {
    let at = 0;
    while (at < chunk.byteLength) {
      if (this.#body === null) {
        const taken = Math.min(4 - this.#headerLength, chunk.byteLength - at);
        this.#header.set(chunk.subarray(at, at + taken), this.#headerLength);
        this.#headerLength += taken;
        at += taken;
        if (this.#headerLength < 4) return;
        const length = this.#length();
        this.#headerLength = 0;
        if (chunk.byteLength - at >= length) {
          const frame = chunk.subarray(at, at + length);
          at += length;
          yield frame;
        } else {
          this.#body = new Uint8Array(length);
          this.#bodyLength = 0;
        }
      } else {
        const taken = Math.min(this.#body.byteLength - this.#bodyLength, chunk.byteLength - at);
        this.#body.set(chunk.subarray(at, at + taken), this.#bodyLength);
        this.#bodyLength += taken;
        at += taken;
        if (this.#bodyLength === this.#body.byteLength) {
          const frame = this.#body;
          this.#body = null;
          yield frame;
        }
      }
    }
  }

  #length(): number {
    const length = readU32(this.#header, 0) | 0;
    if (length < 0 || length > this.#frameBytesMax) {
      throw protocolError(`The length of a frame is ${length}; 0 to ${this.#frameBytesMax} bytes are allowed`);
    }
    return length;
  }
}

/** Encodes one frame. `write` writes the body of the frame. The caller owns the returned bytes. */
export function encodeLengthFrame(write: (writer: ByteWriter) => void): Uint8Array {
  const writer = new ByteWriter();
  writer.i32(0);
  write(writer);
  writer.setI32(0, writer.length - 4);
  return writer.finish();
}
