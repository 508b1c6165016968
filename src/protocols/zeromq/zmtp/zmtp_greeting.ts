/**
 * Encodes and reads the greeting, the first 64 bytes that each side sends: signature, version, security mechanism. RFC
 * 37, "Formal Grammar".
 */
import { ZmtpError } from "./zmtp_error.ts";

export const zmtpGreetingBytes = 64;

const offsets = { signatureEnd: 9, major: 10, minor: 11, mechanism: 12, asServer: 32 } as const;
const mechanismBytes = 20;

export interface ZmtpGreeting {
  readonly major: number;
  readonly minor: number;
  readonly mechanism: string;
}

/** Encodes this side's greeting, with version 3.1. */
export function encodeZmtpGreeting(mechanism: { readonly name: string; readonly asServer: boolean }): Uint8Array {
  const { name, asServer } = mechanism;
  if (!/^[A-Z0-9\-_.+]{1,20}$/.test(name)) throw new RangeError(`"${name}" is not the name of a mechanism`);
  const bytes = new Uint8Array(zmtpGreetingBytes);
  bytes[0] = 0xff;
  bytes[offsets.signatureEnd] = 0x7f;
  bytes[offsets.major] = 3;
  bytes[offsets.minor] = 1;
  bytes.set(new TextEncoder().encode(name), offsets.mechanism);
  bytes[offsets.asServer] = asServer ? 1 : 0;
  return bytes;
}

export class ZmtpGreetingReader {
  readonly #bytes = new Uint8Array(zmtpGreetingBytes);
  #length = 0;

  get missingBytes(): number {
    return zmtpGreetingBytes - this.#length;
  }

  /**
   * Takes bytes of the greeting. Returns the greeting when it is complete, otherwise null. Throws ZmtpError GREETING at
   * the first byte that cannot belong to ZMTP 3: an older peer would never send the rest.
   */
  push(chunk: Uint8Array): ZmtpGreeting | null {
    const before = this.#length;
    const taken = chunk.subarray(0, this.missingBytes);
    this.#bytes.set(taken, before);
    this.#length += taken.byteLength;
    const passed = (offset: number) => before <= offset && this.#length > offset;
    // The padding between the two bytes of the signature has no meaning and is not checked.
    if (passed(0) && this.#bytes[0] !== 0xff) throw this.#notZmtpError();
    if (passed(offsets.signatureEnd) && (this.#byteAt(offsets.signatureEnd) & 1) === 0) {
      throw new ZmtpError("GREETING", "The peer speaks ZMTP 1.0; 3.0 or later is needed");
    }
    if (passed(offsets.major) && this.#byteAt(offsets.major) < 3) {
      throw new ZmtpError("GREETING", "The peer speaks ZMTP 2.0 or older; 3.0 or later is needed");
    }
    return this.missingBytes > 0 ? null : this.#read();
  }

  #read(): ZmtpGreeting {
    const field = this.#bytes.subarray(offsets.mechanism, offsets.mechanism + mechanismBytes);
    const end = field.indexOf(0);
    const mechanism = String.fromCharCode(...field.subarray(0, end < 0 ? mechanismBytes : end));
    return {
      major: this.#byteAt(offsets.major),
      minor: this.#byteAt(offsets.minor),
      mechanism: mechanism.replace(/[^\x21-\x7e]/g, "?"),
    };
  }

  #notZmtpError(): ZmtpError {
    const text = String.fromCharCode(...this.#bytes.subarray(0, Math.min(this.#length, 16)));
    const what = JSON.stringify(text.replace(/[^\x20-\x7e]/g, "?"));
    return new ZmtpError("GREETING", `The peer does not speak ZMTP 3: its first bytes are ${what}`);
  }

  #byteAt(offset: number): number {
    return this.#bytes[offset] ?? 0;
  }
}
