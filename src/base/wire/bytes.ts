/**
 * Reads and writes big-endian numbers, texts and bytes, with bounds checks.
 */
import { BatonError } from "../errors.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Makes the error for bytes that cannot be read, because a peer broke the protocol or data is damaged. */
export function protocolError(message: string, cause?: unknown): BatonError {
  return new BatonError("PROTOCOL", message, cause === undefined ? undefined : { cause });
}

/** Reads forward through a byte array. Throws PROTOCOL if too few bytes are left, before it allocates memory. */
export class ByteReader {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #offset = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  get remaining(): number {
    return this.#bytes.byteLength - this.#offset;
  }

  u8(): number {
    return this.#view.getUint8(this.#advance(1));
  }

  i16(): number {
    return this.#view.getInt16(this.#advance(2));
  }

  i32(): number {
    return this.#view.getInt32(this.#advance(4));
  }

  i64(): bigint {
    return this.#view.getBigInt64(this.#advance(8));
  }

  /** Reads eight bytes as a number below 2^53, which takes less time than a bigint. */
  u53(): number {
    const at = this.#advance(8);
    const value = this.#view.getUint32(at) * 2 ** 32 + this.#view.getUint32(at + 4);
    if (value > Number.MAX_SAFE_INTEGER) throw protocolError("A number is beyond 2^53 - 1");
    return value;
  }

  /**
   * Returns the next `length` bytes as a view of the input. A caller that needs the bytes longer than the input must
   * copy them.
   */
  view(length: number): Uint8Array {
    const start = this.#advance(length);
    return this.#bytes.subarray(start, start + length);
  }

  /** Reads `length` bytes as UTF-8 text. Throws PROTOCOL for invalid UTF-8. */
  utf8(length: number): string {
    const bytes = this.view(length);
    try {
      return decoder.decode(bytes);
    } catch (cause) {
      throw protocolError(`Cannot read ${length} bytes as UTF-8 text`, cause);
    }
  }

  /** Throws PROTOCOL if bytes are left to read. */
  end(): void {
    if (this.remaining > 0) throw protocolError(`${this.remaining} bytes are left over after a complete record`);
  }

  #advance(length: number): number {
    if (!Number.isInteger(length) || length < 0 || length > this.remaining) {
      throw protocolError(`Cannot read ${length} bytes: ${this.remaining} are left`);
    }
    const start = this.#offset;
    this.#offset += length;
    return start;
  }
}

/** Appends to a buffer that grows by doubling. */
export class ByteWriter {
  #bytes: Uint8Array;
  #view: DataView;
  #length = 0;

  constructor(capacity = 128) {
    this.#bytes = new Uint8Array(capacity);
    this.#view = new DataView(this.#bytes.buffer);
  }

  get length(): number {
    return this.#length;
  }

  u8(value: number): void {
    const at = this.#grow(1);
    this.#view.setUint8(at, value);
  }

  i16(value: number): void {
    if (value !== (value << 16) >> 16) throw new RangeError(`${value} is not a 16-bit number`);
    const at = this.#grow(2);
    this.#view.setInt16(at, value);
  }

  /**
   * Writes a signed 32-bit number. Throws if the number does not fit: the version 2^32 - 1 would otherwise arrive as
   * -1, which means "any version".
   */
  i32(value: number): void {
    if (value !== (value | 0)) throw new RangeError(`${value} is not a 32-bit number`);
    const at = this.#grow(4);
    this.#view.setInt32(at, value);
  }

  i64(value: bigint): void {
    if (value !== BigInt.asIntN(64, value)) throw new RangeError(`${value} is not a 64-bit number`);
    const at = this.#grow(8);
    this.#view.setBigInt64(at, value);
  }

  u53(value: number): void {
    if (!Number.isSafeInteger(value) || value < 0) throw new RangeError(`${value} is not a number from 0 to 2^53 - 1`);
    const at = this.#grow(8);
    this.#view.setUint32(at, Math.floor(value / 2 ** 32));
    this.#view.setUint32(at + 4, value % 2 ** 32);
  }

  raw(bytes: Uint8Array): void {
    const at = this.#grow(bytes.byteLength);
    this.#bytes.set(bytes, at);
  }

  /** Writes UTF-8 text after a 32-bit count of its bytes (not of its UTF-16 units). */
  utf8WithI32Length(text: string): void {
    const start = this.#grow(4 + text.length * 3);
    const { written } = encoder.encodeInto(text, this.#bytes.subarray(start + 4));
    this.#view.setInt32(start, written);
    this.#length = start + 4 + written;
  }

  /** Overwrites four bytes at `offset`, for example with a length that is known only later. */
  setI32(offset: number, value: number): void {
    if (offset < 0 || offset + 4 > this.#length) throw new RangeError(`No 4 written bytes at offset ${offset}`);
    this.#view.setInt32(offset, value);
  }

  /** Returns the written bytes as a view that is valid until the next write. */
  finish(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }

  /** Starts again in the same memory. Later writes overwrite bytes that `finish` has returned. */
  clear(): void {
    this.#length = 0;
  }

  #grow(count: number): number {
    const start = this.#length;
    const needed = start + count;
    if (needed > this.#bytes.byteLength) {
      const larger = new Uint8Array(Math.max(needed, this.#bytes.byteLength * 2));
      larger.set(this.#bytes.subarray(0, start));
      this.#bytes = larger;
      this.#view = new DataView(larger.buffer);
    }
    this.#length = needed;
    return start;
  }
}

/** Reads four bytes as a number from 0 to 2^32 - 1. Does not check bounds: bytes beyond the end count as zero. */
export function readU32(bytes: Uint8Array, at: number): number {
  return (((bytes[at] as number) << 24) | ((bytes[at + 1] as number) << 16) | ((bytes[at + 2] as number) << 8) |
    (bytes[at + 3] as number)) >>> 0;
}

/** Writes the lowest 32 bits of a number. Does not check bounds. */
export function writeU32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
}

export function totalByteLength(parts: readonly Uint8Array[]): number {
  let bytes = 0;
  for (let index = 0; index < parts.length; index++) bytes += (parts[index] as Uint8Array).byteLength;
  return bytes;
}

export function joinBytes(parts: readonly Uint8Array[]): Uint8Array {
  const bytes = new Uint8Array(totalByteLength(parts));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.byteLength;
  }
  return bytes;
}
