/** ZMTP framing, outwards: messages and commands to bytes, as few pieces as possible. Never touches a socket. */
import { wireFlags } from "./frame_decoder.ts";

const firstCapacity = 1 << 10;
/** A writer keeps no buffer over this for the next turn … */
const keptCapacity = 64 << 10;
/** … but one of up to so much is kept for all: who has that much to say need not grow into it step by step. */
const spareCapacityMax = 1 << 20;
let spare: Uint8Array<ArrayBuffer> | null = null;
/** From here on a body travels in a write of its own; below, copying it is cheaper than another call of the kernel. */
const largeBodyBytes = 32 << 10;

export class FrameWriter {
  #buffer = new Uint8Array(firstCapacity);
  /** The buffer to go on with when this one is too large to be kept. */
  #kept: Uint8Array<ArrayBuffer> | null = null;
  /** Where in the buffer the current piece begins and ends. */
  #start = 0;
  #end = 0;
  /** Pieces that are complete, and their bytes. */
  #pieces: Uint8Array[] = [];
  #piecesBytes = 0;

  /** Bytes that wait to be taken. */
  get bytes(): number {
    return this.#piecesBytes + this.#end - this.#start;
  }

  /** All frames of a message. A large body is not copied: it must not be changed until it has left. */
  message(frames: readonly Uint8Array[]): void {
    const last = frames.length - 1;
    for (let index = 0; index < last; index++) this.frame(wireFlags.more, frames[index] as Uint8Array);
    this.frame(0, frames[last] as Uint8Array);
  }

  command(body: Uint8Array): void {
    this.frame(wireFlags.command, body);
  }

  frame(flags: number, body: Uint8Array): void {
    const length = body.byteLength;
    const isLarge = length >= largeBodyBytes;
    let at = this.#reserve(isLarge ? 9 : length + 9);
    const buffer = this.#buffer;
    if (length < 256) {
      buffer[at++] = flags;
      buffer[at++] = length;
    } else {
      buffer[at++] = flags | wireFlags.long;
      writeLength(buffer, at, length);
      at += 8;
    }
    if (isLarge) {
      this.#end = at;
      this.#piece(buffer.subarray(this.#start, at));
      this.#start = at;
      this.#piece(body);
      return;
    }
    if (length < 16) { for (let index = 0; index < length; index++) buffer[at + index] = body[index] as number; }
    else buffer.set(body, at);
    this.#end = at + length;
  }

  /** Bytes that are framed already. */
  raw(bytes: Uint8Array): void {
    const at = this.#reserve(bytes.byteLength);
    this.#buffer.set(bytes, at);
    this.#end = at + bytes.byteLength;
  }

  /**
   * Hands everything out, in order. `write` tells whether the bytes are still needed after it has returned: if they never
   * are, the buffer is used again.
   */
  flush(write: (bytes: Uint8Array) => boolean): void {
    if (this.#end > this.#start) this.#piece(this.#buffer.subarray(this.#start, this.#end));
    const pieces = this.#pieces;
    this.#pieces = [];
    this.#piecesBytes = 0;
    let isNeeded = false;
    for (const piece of pieces) isNeeded = write(piece) || isNeeded;
    if (isNeeded) {
      this.#buffer = new Uint8Array(firstCapacity);
      this.#kept = null;
    } else if (this.#buffer.byteLength > keptCapacity) {
      keepSpare(this.#buffer);
      this.#buffer = this.#kept ?? new Uint8Array(firstCapacity);
      this.#kept = null;
    }
    this.#start = 0;
    this.#end = 0;
  }

  #piece(bytes: Uint8Array): void {
    this.#pieces.push(bytes);
    this.#piecesBytes += bytes.byteLength;
  }

  /** Room for so many bytes behind what is written; returns where. Pieces keep the buffer that they lie in. */
  #reserve(count: number): number {
    const needed = this.#end + count;
    if (needed > this.#buffer.byteLength) {
      const used = this.#end - this.#start;
      const wanted = Math.max(this.#buffer.byteLength * 2, used + count);
      const larger = takeSpare(wanted) ?? new Uint8Array(wanted);
      larger.set(this.#buffer.subarray(this.#start, this.#end));
      if (this.#buffer.byteLength <= keptCapacity) this.#kept = this.#buffer;
      this.#buffer = larger;
      this.#start = 0;
      this.#end = used;
    }
    return this.#end;
  }
}

function keepSpare(buffer: Uint8Array<ArrayBuffer>): void {
  const { byteLength } = buffer;
  if (byteLength <= spareCapacityMax && byteLength > (spare?.byteLength ?? 0)) spare = buffer;
}

/** Null where it is too small, in use, or not worth it. */
function takeSpare(bytes: number): Uint8Array<ArrayBuffer> | null {
  if (bytes <= keptCapacity || spare === null || spare.byteLength < bytes) return null;
  const taken = spare;
  spare = null;
  return taken;
}

function writeLength(buffer: Uint8Array, at: number, length: number): void {
  const high = Math.floor(length / 0x100000000);
  buffer[at] = 0;
  buffer[at + 1] = 0;
  buffer[at + 2] = (high >> 8) & 0xff;
  buffer[at + 3] = high & 0xff;
  buffer[at + 4] = (length >>> 24) & 0xff;
  buffer[at + 5] = (length >>> 16) & 0xff;
  buffer[at + 6] = (length >>> 8) & 0xff;
  buffer[at + 7] = length & 0xff;
}
