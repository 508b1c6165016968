/** A lease whose holder gives it up before it is lost. */
import { BatonError } from "../errors.ts";
import type { Lease } from "./lease.ts";
import { LeaseSet } from "./lease_set.ts";

/** A lease that its holder can report as lost, to stop the command. It stays held until the release. */
export class ResignableLease extends LeaseSet {
  readonly #resigned = new AbortController();
  override readonly lost: AbortSignal;

  constructor(lease: Lease) {
    super([lease]);
    this.lost = AbortSignal.any([lease.lost, this.#resigned.signal]);
  }

  /** Aborts `lost` with `why`, a full sentence. Has no effect on a lost lease. */
  resign(why: string): void {
    if (!this.lost.aborted) this.#resigned.abort(new BatonError("REVOKED", why));
  }

  get hasResigned(): boolean {
    return this.#resigned.signal.aborted;
  }
}
