/**
 * Frames of requests and responses, many in one byte array, to pass them between a server's event loop and its storage
 * thread: a structured clone of as many objects takes ten times as long. Never leaves the process.
 */
import { ByteReader, ByteWriter } from "../../../base/wire/bytes.ts";

/** One request or response. The meaning of `kind` is up to the two ends. */
export interface TicketFrames {
  /** Number of the request, from 0 to 2^31 - 1. */
  readonly ticket: number;
  readonly kind: number;
  readonly epoch: number;
  readonly frames: readonly Uint8Array[];
}

/** Initial and maximum bytes of the buffer that is kept for the next batch. */
const capacityMin = 4096;
const capacityMax = 1 << 20;

export class FrameBatch {
  #writer = new ByteWriter(capacityMin);
  #count = 0;

  /** Entries since the last `take`. */
  get count(): number {
    return this.#count;
  }

  get byteLength(): number {
    return this.#writer.length;
  }

  add({ ticket, kind, epoch, frames }: TicketFrames): void {
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
   * Returns the entries in a buffer of their exact size. Memory passed to another thread counts there and here with its
   * whole buffer, and larger buffers cause more garbage collections in both.
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

/** Yields the entries in order; frames are views of the piece. */
export function* unpackFrameBatch(piece: Uint8Array): Generator<TicketFrames, void, void> {
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
