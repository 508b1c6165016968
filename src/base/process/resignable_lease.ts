/** A lease that its holder can resign. */
import { BatonError } from "../errors.ts";
import type { Lease } from "./lease.ts";
import { LeaseSet } from "./lease_set.ts";

/**
 * A lease of which the holder itself can say that it is lost. baton then stops the command. The lock stays held until
 * `release()`.
 */
export class ResignableLease extends LeaseSet {
  readonly #resigned = new AbortController();
  override readonly lost: AbortSignal;

  constructor(lease: Lease) {
    super([lease]);
    this.lost = AbortSignal.any([lease.lost, this.#resigned.signal]);
  }

  /** Aborts `lost` with the sentence `why` as the message. Has no effect on a lost lease. */
  resign(why: string): void {
    if (!this.lost.aborted) this.#resigned.abort(new BatonError("REVOKED", why));
  }

  get hasResigned(): boolean {
    return this.#resigned.signal.aborted;
  }
}
