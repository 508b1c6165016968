/** Cuts a ZMTP stream into what travels as one: the greeting, commands, whole messages. For NULL security. Pure. */

export interface ZmtpUnit {
  /** As it was on the wire. */
  readonly bytes: Uint8Array;
  /** A message's frames; null for a greeting and a command. */
  readonly frames: readonly Uint8Array[] | null;
}

const greetingBytes = 64;
const flagMore = 1;
const flagLong = 2;
const flagCommand = 4;

export class ZmtpUnits {
  #chunks: Uint8Array[] = [];
  #held = 0;
  /** With fewer bytes nothing can be cut. */
  #needed = greetingBytes;
  #isGreeted = false;

  /** Once it is no ZMTP any more, everything is passed on as it comes. */
  push(chunk: Uint8Array): ZmtpUnit[] {
    this.#chunks.push(chunk);
    this.#held += chunk.byteLength;
    if (this.#held < this.#needed) return [];
    const bytes = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks);
    const units: ZmtpUnit[] = [];
    let at = 0;
    for (;;) {
      const unit = this.#isGreeted ? this.#next(bytes, at) : this.#greeting(bytes);
      if (unit === null) break;
      units.push(unit);
      at += unit.bytes.byteLength;
    }
    const rest = bytes.subarray(at);
    this.#chunks = rest.byteLength === 0 ? [] : [rest];
    this.#held = rest.byteLength;
    return units;
  }

  #greeting(bytes: Uint8Array): ZmtpUnit | null {
    this.#needed = greetingBytes;
    if (bytes.byteLength < greetingBytes) return null;
    this.#isGreeted = true;
    return { bytes: bytes.subarray(0, greetingBytes), frames: null };
  }

  /** The frames up to the first that has none behind it. */
  #next(bytes: Uint8Array, start: number): ZmtpUnit | null {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const frames: Uint8Array[] = [];
    for (let at = start;;) {
      this.#needed = at - start + 9;
      if (at + 2 > bytes.byteLength) return null;
      const flags = bytes[at] as number;
      const isLong = (flags & flagLong) !== 0;
      if (isLong && at + 9 > bytes.byteLength) return null;
      const length = isLong ? Number(view.getBigUint64(at + 1)) : bytes[at + 1] as number;
      const from = at + (isLong ? 9 : 2);
      this.#needed = from + length - start;
      if (from + length > bytes.byteLength) return null;
      at = from + length;
      if ((flags & flagCommand) !== 0) return { bytes: bytes.subarray(start, at), frames: null };
      frames.push(bytes.subarray(from, at));
      if ((flags & flagMore) === 0) return { bytes: bytes.subarray(start, at), frames };
    }
  }
}
