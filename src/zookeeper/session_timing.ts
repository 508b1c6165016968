/** What a session does at which age. Pure: ages in, decisions out; all times are monotonic milliseconds. */

/** The design's fractions of T, the negotiated session timeout. */
export interface SessionTiming {
  /** Silence on our side after which a ping goes out. */
  readonly pingMs: number;
  /** Age of the oldest unanswered request at which other servers are tried. */
  readonly doubtMs: number;
  /** Age at which the connection is given up. */
  readonly dropMs: number;
  /** What is kept back from T at the end of the lease. */
  readonly marginMs: number;
  /** How long one server is waited for before the next is tried beside it. */
  readonly staggerMs: number;
}

export function timingOf(timeoutMs: number): SessionTiming {
  return {
    pingMs: timeoutMs / 12,
    doubtMs: timeoutMs / 6,
    dropMs: timeoutMs / 3,
    marginMs: Math.max(500, timeoutMs / 20),
    staggerMs: timeoutMs / 24,
  };
}

/** Up to when no server can have ended the session: its timer started after `provenMs` and runs for T at least. */
export function leaseEndMs(provenMs: number, timeoutMs: number): number {
  return provenMs + timeoutMs - timingOf(timeoutMs).marginMs;
}

/**
 * How long a follower may take to tell its leader of a request. It does so every half tick. `shortestMs` is the shortest
 * timeout that the servers grant: two ticks, unless they were told otherwise. As long as it is unknown (null) T itself is
 * taken for the shortest; the tick of servers that were told otherwise is covered up to T/5, which docs/limits.md demands.
 */
export function relayMs(timeoutMs: number, shortestMs: number | null): number {
  return Math.min(timeoutMs / 4, Math.max(timeoutMs / 10, shortestMs ?? timeoutMs));
}

/** How much of the lease lies ahead, at the least, while one heartbeat after the other is answered. */
export function steadyLeaseMs(timeoutMs: number): number {
  const { marginMs, pingMs } = timingOf(timeoutMs);
  return timeoutMs - marginMs - relayMs(timeoutMs, null) - 2 * pingMs;
}

/** What a connection has to show. */
export interface LivenessFacts {
  /** When the last heartbeat was sent, or what serves as one. */
  readonly lastHeartbeatMs: number;
  readonly isHeartbeatPending: boolean;
  /** Send time of the oldest request without an answer; null when all are answered. */
  readonly oldestUnansweredMs: number | null;
}

/** What to do now, and when to look again. */
export interface HeartbeatDecision {
  readonly action: "trust" | "ping" | "doubt" | "drop";
  readonly nextCheckMs: number;
}

/** A heartbeat that waits for its answer shows the connection's health as well as another one would. */
export function heartbeatAction(nowMs: number, facts: LivenessFacts, timeoutMs: number): HeartbeatDecision {
  const timing = timingOf(timeoutMs);
  const pingAtMs = facts.lastHeartbeatMs + timing.pingMs;
  const isPingDue = !facts.isHeartbeatPending && nowMs >= pingAtMs;
  const doubtAtMs = facts.oldestUnansweredMs === null ? Infinity : facts.oldestUnansweredMs + timing.doubtMs;
  const dropAtMs = doubtAtMs - timing.doubtMs + timing.dropMs;
  if (nowMs >= dropAtMs) return { action: "drop", nextCheckMs: nowMs };
  if (nowMs >= doubtAtMs) return { action: "doubt", nextCheckMs: dropAtMs };
  if (isPingDue) return { action: "ping", nextCheckMs: Math.min(nowMs + timing.pingMs, doubtAtMs) };
  // The answer to a heartbeat may come at any time, and then the next one is due before the doubt would have been.
  return { action: "trust", nextCheckMs: nowMs < pingAtMs ? Math.min(pingAtMs, doubtAtMs) : doubtAtMs };
}

/**
 * How long one attempt to resume the session at one server may take. While the lease runs, short enough for several;
 * afterwards long enough for a slow ensemble.
 */
export function resumeAttemptMs(nowMs: number, leaseEndsMs: number, timeoutMs: number): number {
  return nowMs < leaseEndsMs ? timeoutMs / 6 : Math.max(1000, timeoutMs / 3);
}
