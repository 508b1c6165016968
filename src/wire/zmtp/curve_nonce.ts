/**
 * The counters of CURVE: 8 bytes that each sender counts up with every command of a connection. RFC 26, "The HELLO Command".
 * A repeated one would give two messages the same key stream, and is the mark of a replayed message.
 */
import { ZmtpError } from "./zmtp_error.ts";

const twoTo32 = 0x1_0000_0000;

/** Exact in a number; at a million messages a second it is reached after 285 years. */
const lastNonce = Number.MAX_SAFE_INTEGER;

/** What this side counts with: 1, 2, 3, … */
export class NonceCounter {
  #last: number;

  constructor({ last = 0 }: { readonly last?: number } = {}) {
    this.#last = last;
  }

  /** Writes the next one to the front of `target`. Throws ZmtpError LIMIT when there is none that was not used. */
  next(target: Uint8Array): void {
    if (this.#last >= lastNonce) {
      throw new ZmtpError("LIMIT", `${lastNonce} commands were sent: the connection ends before a nonce comes again`);
    }
    this.#last++;
    const high = Math.floor(this.#last / twoTo32);
    const low = this.#last >>> 0;
    target[0] = high >>> 24;
    target[1] = high >>> 16;
    target[2] = high >>> 8;
    target[3] = high;
    target[4] = low >>> 24;
    target[5] = low >>> 16;
    target[6] = low >>> 8;
    target[7] = low;
  }

  /** The next one, in bytes of its own. */
  take(): Uint8Array {
    const nonce = new Uint8Array(8);
    this.next(nonce);
    return nonce;
  }
}

/** Holds the other side to counting up. All 64 bits are its to use. */
export class NonceOrder {
  #high = 0;
  #low = 0;
  #isFirst = true;

  /** Whether it is higher than all that were accepted. */
  isNext(nonce: Uint8Array): boolean {
    const high = word(nonce, 0);
    return this.#isFirst || high > this.#high || (high === this.#high && word(nonce, 4) > this.#low);
  }

  /** To be called only for what was proven to come from the peer, or somebody else could make its next one too low. */
  accept(nonce: Uint8Array): void {
    this.#high = word(nonce, 0);
    this.#low = word(nonce, 4);
    this.#isFirst = false;
  }
}

function word(bytes: Uint8Array, at: number): number {
  return (((bytes[at] ?? 0) << 24) | ((bytes[at + 1] ?? 0) << 16) | ((bytes[at + 2] ?? 0) << 8) |
    (bytes[at + 3] ?? 0)) >>> 0;
}
