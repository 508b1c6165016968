/** Decodes the bytes of ZMTP frames to commands and whole messages. Uses no socket. RFC 37, "Formal Grammar". */
import { readU32 } from "../../../base/wire/bytes.ts";
import { zmtpFrameOverheadBytes, type ZmtpLimits } from "./zmtp_limits.ts";
import { sealedFrameFlags, type ZmtpTrafficCipher } from "./security_mechanism.ts";
import { ZmtpError } from "./zmtp_error.ts";

/** Bits of the flags byte on the wire. */
export const zmtpFrameFlags = { more: 1, long: 2, command: 4 } as const;

/** Receives decoded commands and messages. If a method returns false, the decoder stops. */
export interface ZmtpFrameSink {
  /** A command has arrived. The body is a view that is valid only during the call. */
  onCommand(body: Uint8Array): boolean;
  /**
   * A message has arrived. The frames belong to the receiver. Small frames may share up to 16 KiB of memory with their
   * neighbors; see `slabBytes`.
   */
  onMessage(frames: Uint8Array[]): boolean;
}

/**
 * The longest slab, in bytes. A slab is one copy of several small bodies in a row. Bodies are copied because the chunk
 * belongs to the caller. Copying each body separately costs ten times as much for bodies from 1 KiB under Bun, and for
 * all bodies under Deno. With a copy of the whole chunk, one small frame could keep 64 KiB or more in memory. A program
 * that keeps a frame for a long time should copy it.
 */
const slabBytes = 16 << 10;

const smallBodyBytes = slabBytes / 2;

/**
 * The first size of the buffer for a body that spans several chunks, in bytes. It is small, so that a peer cannot use
 * up memory by only announcing a length.
 */
const firstRoomBytes = 16 << 10;

const headerBytesMax = 9;
const noBytes = new Uint8Array(0);

export class ZmtpFrameDecoder {
  readonly #limits: ZmtpLimits;
  readonly #sink: ZmtpFrameSink;
  /** False before the end of the handshake, when only commands are allowed. */
  #isTraffic = false;
  #cipher: ZmtpTrafficCipher | null = null;
  /** The frame to put before every message, or null. */
  #prefix: Uint8Array | null = null;

  readonly #header = new Uint8Array(headerBytesMax);
  #headerLength = 0;
  /** The growing buffer of a body that spans several chunks; null if there is no such body. */
  #body: Uint8Array | null = null;
  #bodyFlags = 0;
  #bodyBytes = 0;
  #bodyFilled = 0;
  #frames: Uint8Array[] | null = null;
  #messageFrames = 0;
  #messageBytes = 0;
  /** The current slab, a copy of a part of the current chunk. */
  #slab: Uint8Array = noBytes;
  #slabStart = 0;

  constructor(limits: ZmtpLimits, sink: ZmtpFrameSink) {
    this.#limits = limits;
    this.#sink = sink;
  }

  /**
   * Accepts messages from now on. If `cipher` is not null, frames are sealed. `prefix` becomes the first frame of each
   * message, unless it is null.
   */
  beginTraffic(cipher: ZmtpTrafficCipher | null, prefix: Uint8Array | null): void {
    this.#isTraffic = true;
    this.#cipher = cipher;
    this.#prefix = prefix;
  }

  /** The bytes of memory that the incomplete message uses. */
  get heldBytes(): number {
    return this.#messageBytes + this.#messageFrames * zmtpFrameOverheadBytes + (this.#body?.byteLength ?? 0);
  }

  /**
   * Reads `chunk` from `start` to its end, or until the sink returns false. Returns the index after the bytes that were
   * read; the caller passes the rest again later. Throws ZmtpError FRAME or LIMIT, or an error of the sink; the decoder
   * is then unusable.
   */
  push(chunk: Uint8Array, start = 0): number {
    const end = chunk.byteLength;
    let at = start;
    this.#slab = noBytes;
    while (at < end) {
      if (this.#body !== null) {
        at = this.#fillBody(this.#body, chunk, at);
        if (this.#bodyFilled === this.#bodyBytes && !this.#endBody()) break;
        continue;
      }
      let flags = chunk[at] as number;
      const headerEnd = at + ((flags & zmtpFrameFlags.long) === 0 ? 2 : headerBytesMax);
      if (this.#headerLength > 0 || headerEnd > end) {
        at = this.#gatherHeader(chunk, at);
        if (this.#headerLength > 0) continue;
        if (this.#bodyBytes === 0 && !this.#endBody()) break;
        continue;
      }
      const length = (flags & zmtpFrameFlags.long) === 0 ? chunk[at + 1] as number : readLongLength(chunk, at + 1);
      this.#check(flags, length);
      flags &= ~zmtpFrameFlags.long;
      const bodyEnd = headerEnd + length;
      if (bodyEnd <= end) {
        at = bodyEnd;
        const isTransient = (flags & zmtpFrameFlags.command) !== 0 || this.#cipher !== null;
        const body = isTransient ? chunk.subarray(headerEnd, bodyEnd) : this.#copy(chunk, headerEnd, bodyEnd);
        if (!this.#handleFrame(flags, body)) break;
      } else {
        at = headerEnd;
        this.#beginBody(flags, length);
      }
    }
    this.#slab = noBytes;
    return at;
  }

  /** Returns a copy of this part of the chunk. The copy may share its memory with the next bodies. */
  #copy(chunk: Uint8Array, from: number, to: number): Uint8Array {
    if (to === from) return noBytes;
    const offset = from - this.#slabStart;
    if (offset >= 0 && to - this.#slabStart <= this.#slab.byteLength) {
      return this.#slab.subarray(offset, to - this.#slabStart);
    }
    const end = to - from > smallBodyBytes ? to : findRunEnd(chunk, from, to);
    // No other body would share the slab, so this body is copied separately.
    if (end - to < 64) return chunk.slice(from, to);
    this.#slab = chunk.slice(from, end);
    this.#slabStart = from;
    return this.#slab.subarray(0, to - from);
  }

  /**
   * Reads bytes of a header that spans chunks. When the header is complete, `#headerLength` is 0 and the body has
   * begun.
   */
  #gatherHeader(chunk: Uint8Array, start: number): number {
    let at = start;
    while (at < chunk.byteLength) {
      this.#header[this.#headerLength++] = chunk[at++] as number;
      const flags = this.#header[0] as number;
      const isLong = (flags & zmtpFrameFlags.long) !== 0;
      if (this.#headerLength < (isLong ? headerBytesMax : 2)) continue;
      this.#headerLength = 0;
      const length = isLong ? readLongLength(this.#header, 1) : this.#header[1] as number;
      this.#check(flags, length);
      this.#beginBody(flags & ~zmtpFrameFlags.long, length);
      break;
    }
    return at;
  }

  #beginBody(flags: number, length: number): void {
    this.#body = length === 0 ? noBytes : new Uint8Array(Math.min(length, firstRoomBytes));
    this.#bodyFlags = flags;
    this.#bodyBytes = length;
    this.#bodyFilled = 0;
  }

  /**
   * Fills the body. Its buffer grows by doubling, so that each byte is copied about once more, even if the chunks are
   * small.
   */
  #fillBody(body: Uint8Array, chunk: Uint8Array, at: number): number {
    const taken = Math.min(this.#bodyBytes - this.#bodyFilled, chunk.byteLength - at);
    const filled = this.#bodyFilled + taken;
    let room = body;
    if (filled > room.byteLength) {
      room = new Uint8Array(Math.min(this.#bodyBytes, Math.max(filled, room.byteLength * 2)));
      room.set(body.subarray(0, this.#bodyFilled));
      this.#body = room;
    }
    room.set(taken === chunk.byteLength ? chunk : chunk.subarray(at, at + taken), this.#bodyFilled);
    this.#bodyFilled = filled;
    return at + taken;
  }

  #endBody(): boolean {
    const body = this.#body ?? noBytes;
    this.#body = null;
    return this.#handleFrame(this.#bodyFlags, body);
  }

  /**
   * Handles a whole frame. A message's body must be a copy; any other body may be a view of the chunk.
   */
  #handleFrame(flags: number, body: Uint8Array): boolean {
    if (!this.#isTraffic) return this.#sink.onCommand(body);
    if (this.#cipher !== null) return this.#handleSealedFrame(this.#cipher, body);
    // Accepts commands also between the frames of a message, because libzmq sends PINGs there; RFC 37 allows them only
    // between messages.
    if ((flags & zmtpFrameFlags.command) !== 0) return this.#sink.onCommand(body);
    return this.#addMessageFrame((flags & zmtpFrameFlags.more) !== 0, body);
  }

  /**
   * Handles a sealed frame. Only the flags inside the seal count. For the flags outside, RFC 26 uses commands, and
   * libzmq uses messages without MORE.
   */
  #handleSealedFrame(cipher: ZmtpTrafficCipher, sealed: Uint8Array): boolean {
    const { flags, body } = cipher.open(sealed);
    if ((flags & sealedFrameFlags.command) === 0) {
      return this.#addMessageFrame((flags & sealedFrameFlags.more) !== 0, body);
    }
    this.#checkCommand(body.byteLength);
    return this.#sink.onCommand(body);
  }

  #addMessageFrame(more: boolean, body: Uint8Array): boolean {
    let frames = this.#frames;
    if (frames === null) {
      frames = this.#prefix === null ? [body] : [this.#prefix, body];
      if (!more) return this.#sink.onMessage(frames);
      this.#frames = frames;
    } else frames.push(body);
    this.#messageFrames++;
    this.#messageBytes += body.byteLength;
    if (more) return true;
    this.#frames = null;
    this.#messageFrames = 0;
    this.#messageBytes = 0;
    return this.#sink.onMessage(frames);
  }

  /** Checks a frame before any memory is allocated for it. */
  #check(flags: number, length: number): void {
    const isCommand = (flags & zmtpFrameFlags.command) !== 0;
    if (flags > 7 || (isCommand && (flags & zmtpFrameFlags.more) !== 0)) {
      throw new ZmtpError("FRAME", `A frame has the flags 0x${flags.toString(16).padStart(2, "0")}`);
    }
    if (!this.#isTraffic && !isCommand) {
      throw new ZmtpError("FRAME", "The peer sent a message before the end of the handshake");
    }
    if (isCommand && this.#cipher === null) return this.#checkCommand(length);
    const { messageBytesMax, framesMax } = this.#limits;
    const bytes = this.#messageBytes + length - (this.#cipher?.overheadBytes ?? 0);
    if (bytes > messageBytesMax) {
      throw new ZmtpError("LIMIT", `A message has ${bytes} bytes or more; ${messageBytesMax} are allowed`);
    }
    if (this.#messageFrames >= framesMax) {
      throw new ZmtpError("LIMIT", `A message has more than ${framesMax} frames`);
    }
  }

  #checkCommand(length: number): void {
    const { commandBytesMax } = this.#limits;
    if (length <= commandBytesMax) return;
    throw new ZmtpError("LIMIT", `A command has ${length} bytes; ${commandBytesMax} are allowed`);
  }
}

/**
 * Returns the end of the run of small message frames that begins with the body from `from` to `to`. The run is at most
 * one slab long. A command or a large frame ends it, because the slab should not keep those in memory.
 */
function findRunEnd(chunk: Uint8Array, from: number, to: number): number {
  const runEndMax = Math.min(chunk.byteLength, from + slabBytes);
  let end = to;
  while (end + headerBytesMax <= runEndMax) {
    const flags = chunk[end] as number;
    if ((flags & zmtpFrameFlags.command) !== 0) break;
    const isLong = (flags & zmtpFrameFlags.long) !== 0;
    const length = isLong ? readSmallLength(chunk, end + 1) : chunk[end + 1] as number;
    const next = end + (isLong ? headerBytesMax : 2) + length;
    if (length > smallBodyBytes || next > runEndMax) break;
    end = next;
  }
  return end;
}

/**
 * Reads eight bytes, most significant first. Returns Infinity for a large number; the caller's check of the frame then
 * rejects it.
 */
function readSmallLength(bytes: Uint8Array, at: number): number {
  for (let offset = 0; offset < 6; offset++) if (bytes[at + offset] !== 0) return Infinity;
  return ((bytes[at + 6] as number) << 8) | (bytes[at + 7] as number);
}

/** Reads eight bytes, most significant first. A number beyond 2^53 is inexact, but it exceeds every limit anyway. */
function readLongLength(bytes: Uint8Array, at: number): number {
  const high = readU32(bytes, at);
  if (high > 0x7fffffff) throw new ZmtpError("FRAME", "A frame claims 2^63 bytes or more");
  return high * 0x100000000 + readU32(bytes, at + 4);
}
