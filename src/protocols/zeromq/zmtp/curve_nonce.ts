/**
 * The counters in CURVE's nonces: 8 bytes that a sender increases with every command of a connection. RFC 26, "The
 * HELLO Command". If a sender repeated a counter, it would encrypt two messages with the same key stream. If a receiver
 * gets a counter twice, a message was replayed.
 */
import { readU32, writeU32 } from "../../../base/wire/bytes.ts";
import { ZmtpError } from "./zmtp_error.ts";

const twoTo32 = 0x1_0000_0000;

/** The largest counter, an exact integer. A sender of a million messages per second reaches it after 285 years. */
const lastNonce = Number.MAX_SAFE_INTEGER;

/** This side's counter: 1, 2, 3, … */
export class CurveNonceCounter {
  #last: number;

  constructor({ last = 0 }: { readonly last?: number } = {}) {
    this.#last = last;
  }

  /** Writes the next counter to the start of `target`. Throws ZmtpError LIMIT if all counters were used. */
  writeNext(target: Uint8Array): void {
    if (this.#last >= lastNonce) {
      throw new ZmtpError("LIMIT", `${lastNonce} commands were sent: the connection ends before a nonce is repeated`);
    }
    this.#last++;
    writeU32(target, 0, Math.floor(this.#last / twoTo32));
    writeU32(target, 4, this.#last);
  }

  takeNext(): Uint8Array {
    const nonce = new Uint8Array(8);
    this.writeNext(nonce);
    return nonce;
  }
}

/** Checks that the peer's counter always increases. The peer's counter may use all 64 bits. */
export class CurveNonceOrderCheck {
  #high = 0;
  #low = 0;
  #isFirst = true;

  /** Returns true if the counter is higher than all accepted counters. */
  isNext(nonce: Uint8Array): boolean {
    const high = readU32(nonce, 0);
    return this.#isFirst || high > this.#high || (high === this.#high && readU32(nonce, 4) > this.#low);
  }

  /**
   * Accepts a counter. The caller must first prove that the command comes from the peer; otherwise a third party could
   * make the peer's next counter too low.
   */
  accept(nonce: Uint8Array): void {
    this.#high = readU32(nonce, 0);
    this.#low = readU32(nonce, 4);
    this.#isFirst = false;
  }
}
