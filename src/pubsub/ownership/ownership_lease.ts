/** How long a server may respond OK for its topics. */
import type { ZooKeeperSession } from "../../protocols/zookeeper/zookeeper.ts";
import { deriveSessionTiming } from "../../protocols/zookeeper/session_timing.ts";
import type { Clock } from "../../base/support/clock.ts";

/**
 * Returns when ownership ends: two thirds of T after the send time of the last request that the leader has certainly
 * received (ADR 13). The last third of T, more than a lock's margin, is time for responses to leave before an operator
 * can have the server forgotten. Monotonic milliseconds; `leaseEndMs` is the session's.
 */
export function ownershipEndMs(leaseEndMs: number, timeoutMs: number): number {
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
    return this.#clock.now() < ownershipEndMs(this.#session.leaseEndMs(), this.#session.timeoutMs);
  }

  /** Whether OK may be sent now. Detects a suspend first, which reads /proc/uptime: call it once per batch. */
  isConfirmed(): boolean {
    this.#clock.noticeSuspend();
    return this.isHeld();
  }
}
