/** Encodes messages and commands to ZMTP frames, in as few pieces of bytes as possible. Uses no socket. */
import { writeU32 } from "../../../base/wire/bytes.ts";
import { zmtpFrameFlags } from "./frame_decoder.ts";

const firstCapacity = 1 << 10;
/** The largest buffer that a writer keeps after a flush, in bytes. */
const keptCapacity = 64 << 10;
/**
 * The largest size of `spare`, in bytes. All writers share this buffer: a writer with much data then need not grow its
 * own buffer step by step.
 */
const spareCapacityMax = 1 << 20;
let spare: Uint8Array<ArrayBuffer> | null = null;
/**
 * The shortest body that is written separately, in bytes. A shorter body is copied, because copying takes less time
 * than another system call.
 */
const largeBodyBytes = 32 << 10;

export class ZmtpFrameWriter {
  #buffer = new Uint8Array(firstCapacity);
  /** The buffer to continue with after a flush, if the current one is too large to keep. */
  #kept: Uint8Array<ArrayBuffer> | null = null;
  /** The start and end of the current piece in the buffer. */
  #start = 0;
  #end = 0;
  /** The complete pieces, and their total bytes. */
  #pieces: Uint8Array[] = [];
  #piecesBytes = 0;

  get pendingBytes(): number {
    return this.#piecesBytes + this.#end - this.#start;
  }

  /**
   * Adds all frames of a message. A large body is not copied, so the caller must not change it until the body was
   * written.
   */
  addMessage(frames: readonly Uint8Array[]): void {
    const last = frames.length - 1;
    for (let index = 0; index < last; index++) this.addFrame(zmtpFrameFlags.more, frames[index] as Uint8Array);
    this.addFrame(0, frames[last] as Uint8Array);
  }

  addCommand(body: Uint8Array): void {
    this.addFrame(zmtpFrameFlags.command, body);
  }

  addFrame(flags: number, body: Uint8Array): void {
    const length = body.byteLength;
    const isLarge = length >= largeBodyBytes;
    let at = this.#reserve(isLarge ? 9 : length + 9);
    const buffer = this.#buffer;
    if (length < 256) {
      buffer[at++] = flags;
      buffer[at++] = length;
    } else {
      buffer[at++] = flags | zmtpFrameFlags.long;
      writeU32(buffer, at, Math.floor(length / 0x100000000));
      writeU32(buffer, at + 4, length);
      at += 8;
    }
    if (isLarge) {
      this.#end = at;
      this.#addPiece(buffer.subarray(this.#start, at));
      this.#start = at;
      this.#addPiece(body);
      return;
    }
    if (length < 16) { for (let index = 0; index < length; index++) buffer[at + index] = body[index] as number; }
    else buffer.set(body, at);
    this.#end = at + length;
  }

  addRaw(bytes: Uint8Array): void {
    const at = this.#reserve(bytes.byteLength);
    this.#buffer.set(bytes, at);
    this.#end = at + bytes.byteLength;
  }

  /**
   * Passes all bytes to `write`, in order. `write` returns true if it keeps the bytes; otherwise their buffer is
   * reused.
   */
  flush(write: (bytes: Uint8Array) => boolean): void {
    if (this.#end > this.#start) this.#addPiece(this.#buffer.subarray(this.#start, this.#end));
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

  #addPiece(bytes: Uint8Array): void {
    this.#pieces.push(bytes);
    this.#piecesBytes += bytes.byteLength;
  }

  /**
   * Reserves bytes after the written ones and returns their index. Complete pieces keep their buffer.
   */
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

/**
 * Takes the spare buffer for this writer. Returns null if the spare buffer is too small or in use, or if a small buffer
 * is enough.
 */
function takeSpare(bytes: number): Uint8Array<ArrayBuffer> | null {
  if (bytes <= keptCapacity || spare === null || spare.byteLength < bytes) return null;
  const taken = spare;
  spare = null;
  return taken;
}
