/** ZooKeeper framing: a 32-bit length, then so many bytes. Bytes in, frames out; never touches a socket or a clock. */
import { ByteWriter, protocolError } from "../bytes.ts";

/** The server's default jute.maxbuffer; a larger frame is refused unless the limit is set higher. */
export const frameBytesMaxDefault = 0xfffff;

/**
 * Cuts a stream of chunks into frames. A length outside 0…frameBytesMax is a protocol error, raised before anything
 * is allocated. The frames of one chunk are views onto it; only a frame that spans chunks is copied, once.
 */
export class JuteFrameDecoder {
  readonly #frameBytesMax: number;
  readonly #header = new Uint8Array(4);
  #headerLength = 0;
  #body: Uint8Array | null = null;
  #bodyLength = 0;

  constructor(frameBytesMax = frameBytesMaxDefault) {
    this.#frameBytesMax = frameBytesMax;
  }

  /** Room taken for a frame that is not complete. */
  get pendingBytes(): number {
    return this.#body?.byteLength ?? 0;
  }

  /** The frames that are complete with this chunk, without their length. */
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
    const [a = 0, b = 0, c = 0, d = 0] = this.#header;
    const length = (a << 24) | (b << 16) | (c << 8) | d;
    if (length < 0 || length > this.#frameBytesMax) {
      throw protocolError(`A frame claims ${length} bytes; 0 to ${this.#frameBytesMax} are allowed`);
    }
    return length;
  }
}

/** One frame with its length in front; `write` fills the body. The result is a view that nothing else writes to. */
export function encodeFrame(write: (writer: ByteWriter) => void): Uint8Array {
  const writer = new ByteWriter();
  writer.i32(0);
  write(writer);
  writer.setI32(0, writer.length - 4);
  return writer.finish();
}
