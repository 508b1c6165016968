/**
 * Packs the frames of many requests or responses into one byte array, for the messages between a server's event loop
 * and its storage thread. Sending the same frames as separate objects would take ten times as long.
 */
import { ByteReader, ByteWriter } from "../../../base/wire/bytes.ts";

/** The frames of one request or response. Sender and receiver agree on the meaning of `kind`. */
export interface NumberedFrames {
  /** The server's number of the request, from 0 to 2^31 - 1. */
  readonly ticket: number;
  readonly kind: number;
  readonly epoch: number;
  readonly frames: readonly Uint8Array[];
}

/** The initial size of the buffer, and the largest size that is kept for the next batch, in bytes. */
const capacityMin = 4096;
const capacityMax = 1 << 20;

export class FrameBatch {
  #writer = new ByteWriter(capacityMin);
  #count = 0;

  get count(): number {
    return this.#count;
  }

  get byteLength(): number {
    return this.#writer.length;
  }

  add({ ticket, kind, epoch, frames }: NumberedFrames): void {
    const writer = this.#writer;
    this.#count++;
    writer.i32(ticket);
    writer.u8(kind);
    writer.u53(epoch);
    writer.i32(frames.length);
    for (const frame of frames) {
      writer.i32(frame.byteLength);
      writer.raw(frame);
    }
  }

  /**
   * Returns the entries in a buffer of their exact size, and begins the next batch. A buffer that is too large would
   * cause more garbage collections in both threads.
   */
  take(): Uint8Array {
    const bytes = this.#writer.finish();
    const isBufferKept = bytes.buffer.byteLength <= capacityMax;
    const piece = isBufferKept ? bytes.slice() : bytes;
    if (isBufferKept) this.#writer.clear();
    else this.#writer = new ByteWriter(capacityMin);
    this.#count = 0;
    return piece;
  }
}

/** Yields the entries of a batch in order; their frames are views of `piece`. */
export function* unpackFrameBatch(piece: Uint8Array): Generator<NumberedFrames, void, void> {
  const reader = new ByteReader(piece);
  while (reader.remaining > 0) {
    const ticket = reader.i32();
    const kind = reader.u8();
    const epoch = reader.u53();
    const frames: Uint8Array[] = [];
    for (let left = reader.i32(); left > 0; left--) frames.push(reader.view(reader.i32()));
    yield { ticket, kind, epoch, frames };
  }
}
