/** Until when a server may answer OK for what it owns. */
import type { ZooKeeperSession } from "../../zookeeper/zookeeper.ts";
import { timingOf } from "../../zookeeper/session_timing.ts";
import type { Clock } from "../../support/clock.ts";

/**
 * Two thirds of T after the send time of the last request that the leader is known to have heard of (ADR 13): a third of
 * T, more than a lock's margin, is left for an answer to leave before an operator can have the server forgotten.
 * Monotonic milliseconds; `leaseEndMs` is the session's.
 */
export function ownershipEndMs(leaseEndMs: number, timeoutMs: number): number {
  const provenMs = leaseEndMs - timeoutMs + timingOf(timeoutMs).marginMs;
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

  /** For good: whatever the session does, nothing is answered under this lease any more. */
  end(): void {
    this.#isOver = true;
  }

  /** Whether work may begin. */
  isHeld(): boolean {
    if (this.#isOver || this.#session.ended.aborted) return false;
    return this.#clock.now() < ownershipEndMs(this.#session.leaseEndMs(), this.#session.timeoutMs);
  }

  /** Whether OK may be answered now: looks for a suspend first. Costs a read of /proc/uptime: once for each batch. */
  isConfirmed(): boolean {
    this.#clock.noticeSuspend();
    return this.isHeld();
  }
}
