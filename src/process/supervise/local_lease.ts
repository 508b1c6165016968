/** Time that no server can take away: the lease of a command that runs after leadership is over. */
import type { Lease } from "../lease.ts";
import type { Clock } from "../../support/clock.ts";
import { newGuid } from "../../support/guid.ts";

export class OwnTime implements Lease {
  readonly name = "";
  readonly path = "";
  /** Marks the processes that run under it. */
  readonly holderId = newGuid();
  readonly mode = "exclusive";
  readonly slot = null;
  readonly limit = null;
  readonly fencingToken = 0n;
  readonly sessionId = 0n;
  readonly waitedMs = 0;
  /** How long a wait for what was killed may take. */
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
