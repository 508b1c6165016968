/** Tells how long a server may answer requests for its topics with OK. */
import type { ZooKeeperSession } from "../../protocols/zookeeper/zookeeper.ts";
import { deriveSessionTiming } from "../../protocols/zookeeper/session_timing.ts";
import type { Clock } from "../../base/support/clock.ts";

/**
 * Returns the monotonic time in milliseconds at which ownership ends. Ownership lasts for two thirds of the session
 * timeout, counted from the last request that the leader certainly received (ADR 13). The last third gives responses
 * time to leave before an operator can have the server forgotten; it is longer than a lock's margin. `leaseEndMs` is
 * the end of the session's lease.
 */
export function topicOwnershipEndMs(leaseEndMs: number, timeoutMs: number): number {
  const provenMs = leaseEndMs - timeoutMs + deriveSessionTiming(timeoutMs).marginMs;
  return provenMs + timeoutMs * 2 / 3;
}

export class OwnershipLease {
  readonly #session: ZooKeeperSession;
  readonly #clock: Clock;
  #isOver = false;

  constructor(session: ZooKeeperSession, clock: Clock) {
    this.#session = session;
    this.#clock = clock;
  }

  /** Ends the lease permanently, even if the session continues. */
  end(): void {
    this.#isOver = true;
  }

  isHeld(): boolean {
    if (this.#isOver || this.#session.ended.aborted) return false;
    return this.#clock.now() < topicOwnershipEndMs(this.#session.leaseEndMs(), this.#session.timeoutMs);
  }

  /**
   * Returns true if OK may be sent now. Reads /proc/uptime first, to detect a suspend; the caller should therefore call
   * this method only once per batch.
   */
  isConfirmed(): boolean {
    this.#clock.noticeSuspend();
    return this.isHeld();
  }
}
