/** The actions of a session by its age. Pure: ages in, decisions out. All times are monotonic milliseconds. */

/** Intervals as fractions of T, the negotiated session timeout. */
export interface SessionTiming {
  /** A ping is sent after this time without a request. */
  readonly pingMs: number;
  /** Other servers are tried when the oldest unanswered request is this old. */
  readonly doubtMs: number;
  /** The connection is closed when it is this old. */
  readonly dropMs: number;
  /** The safety margin between the end of the lease and the end of T. */
  readonly marginMs: number;
  /** The time that one server gets before the next one is also tried. */
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

/** The time up to which no server can have ended the session: its timer started after `provenMs` and runs for at least T. */
export function leaseEndMs(provenMs: number, timeoutMs: number): number {
  return provenMs + timeoutMs - timingOf(timeoutMs).marginMs;
}

/**
 * The time within which a follower reports a request to its leader: half a tick. `shortestMs` is the shortest timeout that the
 * servers grant, two ticks by default. While it is unknown (null), T is used instead. A configured minimum that is shorter is
 * covered for ticks of up to T/5, as docs/limits.md requires.
 */
export function relayMs(timeoutMs: number, shortestMs: number | null): number {
  return Math.min(timeoutMs / 4, Math.max(timeoutMs / 10, shortestMs ?? timeoutMs));
}

/** The least remaining lease while each heartbeat gets its response. */
export function steadyLeaseMs(timeoutMs: number): number {
  const { marginMs, pingMs } = timingOf(timeoutMs);
  return timeoutMs - marginMs - relayMs(timeoutMs, null) - 2 * pingMs;
}

export interface LivenessFacts {
  /** The send time of the last heartbeat, or of a request that serves as one. */
  readonly lastHeartbeatMs: number;
  readonly isHeartbeatPending: boolean;
  /** The send time of the oldest request without a response; null when there is none. */
  readonly oldestUnansweredMs: number | null;
}

export interface HeartbeatDecision {
  readonly action: "trust" | "ping" | "doubt" | "drop";
  readonly nextCheckMs: number;
}

/** Decides what to do with a connection. A heartbeat without response shows the connection's health as well as another one would. */
export function heartbeatAction(nowMs: number, facts: LivenessFacts, timeoutMs: number): HeartbeatDecision {
  const timing = timingOf(timeoutMs);
  const pingAtMs = facts.lastHeartbeatMs + timing.pingMs;
  const isPingDue = !facts.isHeartbeatPending && nowMs >= pingAtMs;
  const doubtAtMs = facts.oldestUnansweredMs === null ? Infinity : facts.oldestUnansweredMs + timing.doubtMs;
  const dropAtMs = doubtAtMs - timing.doubtMs + timing.dropMs;
  if (nowMs >= dropAtMs) return { action: "drop", nextCheckMs: nowMs };
  if (nowMs >= doubtAtMs) return { action: "doubt", nextCheckMs: dropAtMs };
  if (isPingDue) return { action: "ping", nextCheckMs: Math.min(nowMs + timing.pingMs, doubtAtMs) };
  // The response to a heartbeat may arrive at any time, and then the next heartbeat is due before the doubt would be.
  return { action: "trust", nextCheckMs: nowMs < pingAtMs ? Math.min(pingAtMs, doubtAtMs) : doubtAtMs };
}

/**
 * The time limit of one attempt to resume the session. While the lease lasts it leaves time for several attempts; afterwards it
 * is long enough for a slow ensemble.
 */
export function resumeAttemptMs(nowMs: number, leaseEndsMs: number, timeoutMs: number): number {
  return nowMs < leaseEndsMs ? timeoutMs / 6 : Math.max(1000, timeoutMs / 3);
}
