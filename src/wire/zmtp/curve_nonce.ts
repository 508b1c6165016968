/**
 * The counters of CURVE: 8 bytes that each sender increases with every command of a connection. RFC 26, "The HELLO
 * Command". A repeated counter would encrypt two messages with the same key stream, and indicates a replayed message.
 */
import { ZmtpError } from "./zmtp_error.ts";

const twoTo32 = 0x1_0000_0000;

/** Largest exact integer of a number; at a million messages a second it is reached after 285 years. */
const lastNonce = Number.MAX_SAFE_INTEGER;

/** Counter of this side: 1, 2, 3, … */
export class NonceCounter {
  #last: number;

  constructor({ last = 0 }: { readonly last?: number } = {}) {
    this.#last = last;
  }

  /** Writes the next counter to the start of `target`. Throws ZmtpError LIMIT if all were used. */
  writeNext(target: Uint8Array): void {
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

  /** Returns the next counter in a new array. */
  takeNext(): Uint8Array {
    const nonce = new Uint8Array(8);
    this.writeNext(nonce);
    return nonce;
  }
}

/** Checks that the peer's counter always increases. The peer may use all 64 bits. */
export class NonceOrder {
  #high = 0;
  #low = 0;
  #isFirst = true;

  /** Returns whether the counter is higher than all accepted ones. */
  isNext(nonce: Uint8Array): boolean {
    const high = readWord(nonce, 0);
    return this.#isFirst || high > this.#high || (high === this.#high && readWord(nonce, 4) > this.#low);
  }

  /**
   * Accepts a counter. Call it only for a command that is proven to come from the peer; otherwise a third party could
   * make the peer's next counter too low.
   */
  accept(nonce: Uint8Array): void {
    this.#high = readWord(nonce, 0);
    this.#low = readWord(nonce, 4);
    this.#isFirst = false;
  }
}

function readWord(bytes: Uint8Array, at: number): number {
  return (((bytes[at] ?? 0) << 24) | ((bytes[at + 1] ?? 0) << 16) | ((bytes[at + 2] ?? 0) << 8) |
    (bytes[at + 3] ?? 0)) >>> 0;
}
