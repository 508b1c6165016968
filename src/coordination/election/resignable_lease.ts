/** Lease that its holder may report as lost, which stops the command; it stays held until the release. */
import { BatonError } from "../../errors.ts";
import { onAbort } from "../../support/abort.ts";
import type { Lease, LockMode } from "../../process/lease.ts";

export class ResignableLease implements Lease {
  readonly #lease: Lease;
  readonly #lost = new AbortController();
  #hasResigned = false;

  constructor(lease: Lease) {
    this.#lease = lease;
    onAbort(lease.lost, (reason) => this.#lost.abort(reason));
  }

  /** Aborts `lost` with `why`, a full sentence. Has no effect on a lost lease. */
  resign(why: string): void {
    if (this.#lost.signal.aborted) return;
    this.#hasResigned = true;
    this.#lost.abort(new BatonError("REVOKED", why));
  }

  get hasResigned(): boolean {
    return this.#hasResigned;
  }
  get lost(): AbortSignal {
    return this.#lost.signal;
  }
  get name(): string {
    return this.#lease.name;
  }
  get path(): string {
    return this.#lease.path;
  }
  get holderId(): string {
    return this.#lease.holderId;
  }
  get mode(): LockMode {
    return this.#lease.mode;
  }
  get slot(): number | null {
    return this.#lease.slot;
  }
  get limit(): number | null {
    return this.#lease.limit;
  }
  get fencingToken(): bigint {
    return this.#lease.fencingToken;
  }
  get sessionId(): bigint {
    return this.#lease.sessionId;
  }
  get sessionTimeoutMs(): number {
    return this.#lease.sessionTimeoutMs;
  }
  get waitedMs(): number {
    return this.#lease.waitedMs;
  }

  isHeld(): boolean {
    return this.#lease.isHeld();
  }

  endMs(): number {
    return this.#lease.endMs();
  }

  inDoubt(): boolean {
    return this.#lease.inDoubt();
  }

  subscribe(listener: () => void): () => void {
    return this.#lease.subscribe(listener);
  }

  release(): Promise<void> {
    return this.#lease.release();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }
}
