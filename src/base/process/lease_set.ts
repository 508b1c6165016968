/** Treats several held locks as a single lock. */
import type { Lease, LockMode } from "./lease.ts";

/**
 * Combines several leases of one session. `lost` aborts when the first of them is lost; `release()` releases them in
 * reverse order.
 */
export class LeaseSet implements Lease {
  readonly #leases: readonly [Lease, ...Lease[]];
  readonly lost: AbortSignal;
  readonly name: string;
  readonly path: string;
  readonly waitedMs: number;
  readonly isLocal: boolean;
  readonly nodes: readonly string[];
  // These values are those of the first lease. Each permit has its own slot, and each lock its own fencing token.
  readonly holderId: string;
  readonly mode: LockMode;
  readonly slot: number | null;
  readonly limit: number | null;
  readonly fencingToken: bigint;
  readonly sessionId: bigint;
  readonly sessionTimeoutMs: number;

  /** Expects the leases in the order in which they were acquired. */
  constructor(leases: readonly [Lease, ...Lease[]]) {
    this.#leases = leases;
    this.lost = AbortSignal.any(leases.map((lease) => lease.lost));
    this.name = leases.map((lease) => lease.name).join(", ");
    this.path = leases.map((lease) => lease.path).join(", ");
    this.waitedMs = leases.reduce((total, lease) => total + lease.waitedMs, 0);
    this.isLocal = leases.every((lease) => lease.isLocal ?? false);
    this.nodes = leases.flatMap((lease) => lease.nodes ?? []);
    const [first] = leases;
    this.holderId = first.holderId;
    this.mode = first.mode;
    this.slot = first.slot;
    this.limit = first.limit;
    this.fencingToken = first.fencingToken;
    this.sessionId = first.sessionId;
    this.sessionTimeoutMs = first.sessionTimeoutMs;
  }

  isHeld(): boolean {
    return this.#leases.every((lease) => lease.isHeld());
  }

  endMs(): number {
    return Math.min(...this.#leases.map((lease) => lease.endMs()));
  }

  describeOutage(): string {
    return this.#leases[0].describeOutage?.() ?? "";
  }

  inDoubt(): boolean {
    return this.#leases.some((lease) => lease.inDoubt());
  }

  subscribe(listener: () => void): () => void {
    const removals = this.#leases.map((lease) => lease.subscribe(listener));
    return () => removals.forEach((remove) => remove());
  }

  warn(...warning: Parameters<NonNullable<Lease["warn"]>>): void {
    for (const lease of this.#leases) lease.warn?.(...warning);
  }

  /** Releases all leases. Rejects with the first failure, if there are any. */
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
