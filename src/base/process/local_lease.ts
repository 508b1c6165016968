/** Leases for commands that run without a lock. */
import type { Clock } from "../support/clock.ts";
import { newGuid } from "../support/guid.ts";
import type { Lease } from "./lease.ts";

/**
 * A lease of fixed length, for a command that needs no lock, or that runs after the end of a leadership. No server can
 * end this lease.
 */
export class LocalLease implements Lease {
  readonly name = "";
  readonly path = "";
  /** The ID of the holder. It also marks the processes that run under this lease. */
  readonly holderId = newGuid();
  readonly mode = "exclusive";
  readonly slot = null;
  readonly limit = null;
  readonly fencingToken = 0n;
  readonly sessionId = 0n;
  readonly waitedMs = 0;
  readonly isLocal = true;
  /** The time in milliseconds that limits how long baton waits for killed processes. */
  readonly sessionTimeoutMs = 10_000;
  readonly lost = new AbortController().signal;
  readonly #clock: Clock;
  readonly #endMs: number;

  constructor(clock: Clock, durationMs: number) {
    this.#clock = clock;
    this.#endMs = clock.now() + durationMs;
  }

  isHeld(): boolean {
    return this.#clock.now() < this.#endMs;
  }

  endMs(): number {
    return this.#endMs;
  }

  inDoubt(): boolean {
    return false;
  }

  subscribe(): () => void {
    return () => {};
  }

  release(): Promise<void> {
    return Promise.resolve();
  }

  async [Symbol.asyncDispose](): Promise<void> {}
}
