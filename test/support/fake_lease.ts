/** A lease whose end, doubt and loss a test sets by hand. */
import { BatonError } from "../../src/base/errors.ts";
import type { Lease } from "../../src/base/process/lease.ts";
import type { Clock } from "../../src/base/support/clock.ts";
import { newGuid } from "../../src/base/support/guid.ts";

export class FakeLease implements Lease {
  readonly name = "fake";
  readonly path = "/baton/locks/fake";
  /** One of its own each time, as from a server: a job's processes are found by it. */
  readonly holderId = newGuid();
  readonly mode = "exclusive";
  readonly slot = null;
  readonly limit = null;
  readonly fencingToken = 1n;
  readonly sessionId = 1n;
  readonly waitedMs = 0;
  readonly sessionTimeoutMs: number;
  released = false;

  readonly #clock: Clock;
  readonly #lost = new AbortController();
  readonly #listeners = new Set<() => void>();
  #endMs: number;
  #inDoubt = false;

  constructor(clock: Clock, sessionTimeoutMs: number, leaseMs: number) {
    this.#clock = clock;
    this.sessionTimeoutMs = sessionTimeoutMs;
    this.#endMs = clock.now() + leaseMs;
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  isHeld(): boolean {
    return !this.released && !this.#lost.signal.aborted && this.#clock.now() < this.#endMs;
  }

  endMs(): number {
    return this.#endMs;
  }

  inDoubt(): boolean {
    return this.#inDoubt;
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  release(): Promise<void> {
    this.released = true;
    return Promise.resolve();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release();
  }

  /** Moves the lease end to `leaseMs` from now. */
  renew(leaseMs: number): void {
    this.#endMs = this.#clock.now() + leaseMs;
    for (const listener of this.#listeners) listener();
  }

  doubt(inDoubt: boolean): void {
    this.#inDoubt = inDoubt;
    for (const listener of this.#listeners) listener();
  }

  lose(code: "LOCK_LOST" | "REVOKED"): void {
    this.#lost.abort(new BatonError(code, `the test says ${code}`));
  }
}
