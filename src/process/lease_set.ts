/** Several leases of one session as one lease: lost with the first loss, released in reverse order. */
import { BatonError } from "../errors.ts";
import type { Lease, LockMode } from "./lease.ts";

export class LeaseSet implements Lease {
  readonly #leases: readonly [Lease, ...Lease[]];
  readonly lost: AbortSignal;

  /** Expects the leases in the order in which they were acquired. */
  constructor(leases: readonly [Lease, ...Lease[]]) {
    this.#leases = leases;
    this.lost = AbortSignal.any(leases.map((lease) => lease.lost));
  }

  get name(): string {
    return this.#leases.map((lease) => lease.name).join(", ");
  }
  get path(): string {
    return this.#leases.map((lease) => lease.path).join(", ");
  }
  get holderId(): string {
    return this.#leases[0].holderId;
  }
  get mode(): LockMode {
    return this.#leases[0].mode;
  }
  /** Slot of the first lock; each permit has its own. */
  get slot(): number | null {
    return this.#leases[0].slot;
  }
  /** Limit of the first lock. */
  get limit(): number | null {
    return this.#leases[0].limit;
  }
  /** Fencing token of the first lock; each lock has its own. */
  get fencingToken(): bigint {
    return this.#leases[0].fencingToken;
  }
  get sessionId(): bigint {
    return this.#leases[0].sessionId;
  }
  get sessionTimeoutMs(): number {
    return this.#leases[0].sessionTimeoutMs;
  }
  get waitedMs(): number {
    return this.#leases.reduce((total, lease) => total + lease.waitedMs, 0);
  }

  isHeld(): boolean {
    return this.#leases.every((lease) => lease.isHeld());
  }

  endMs(): number {
    return Math.min(...this.#leases.map((lease) => lease.endMs()));
  }

  inDoubt(): boolean {
    return this.#leases.some((lease) => lease.inDoubt());
  }

  subscribe(listener: () => void): () => void {
    const removals = this.#leases.map((lease) => lease.subscribe(listener));
    return () => removals.forEach((remove) => remove());
  }

  /** Releases all leases; rejects with the first failure. */
  async release(): Promise<void> {
    const failures: unknown[] = [];
    for (const lease of [...this.#leases].reverse()) {
      await lease.release().catch((failure: unknown) => failures.push(failure));
    }
    if (failures.length > 0) throw failures[0];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}

/** Lease that its holder may report as lost, which stops the command; it stays held until the release. */
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
