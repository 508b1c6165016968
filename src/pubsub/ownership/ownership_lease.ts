/** Tells how long a server may answer requests for its topics with OK. */
import type { ZooKeeperSession } from "../../protocols/zookeeper/zookeeper.ts";
import { deriveSessionTiming } from "../../protocols/zookeeper/session_timing.ts";
import type { Clock } from "../../base/support/clock.ts";

/**
 * Returns the monotonic time in milliseconds at which ownership ends. That is two thirds of T after the leader
 * certainly received a request, counted from when the request was sent (ADR 13). The last third of T exceeds a lock's
 * margin. It gives responses time to leave before an operator can have the server forgotten. `leaseEndMs` is when the
 * session's lease ends.
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

  /** Ends the lease for good, whatever the session does. */
  end(): void {
    this.#isOver = true;
  }

  /** Whether requests may be admitted. */
  isHeld(): boolean {
    if (this.#isOver || this.#session.ended.aborted) return false;
    return this.#clock.now() < topicOwnershipEndMs(this.#session.leaseEndMs(), this.#session.timeoutMs);
  }

  /** Whether OK may be sent now. Detects a suspend first by reading /proc/uptime, so call it once per batch. */
  isConfirmed(): boolean {
    this.#clock.noticeSuspend();
    return this.isHeld();
  }
}
