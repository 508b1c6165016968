/**
 * Decides when a session sends heartbeats, doubts a connection, and gives it up. Pure. All times are monotonic, in
 * milliseconds.
 */

/** Intervals that are fractions of T, the negotiated session timeout. */
export interface SessionTiming {
  /** The time without a request after which the session sends a ping, in milliseconds. */
  readonly pingMs: number;
  /** The age of the oldest unanswered request at which the session tries other servers, in milliseconds. */
  readonly doubtMs: number;
  /** The age of the oldest unanswered request at which the session closes the connection, in milliseconds. */
  readonly dropMs: number;
  /** The safety margin between the end of the lease and the end of T, in milliseconds. */
  readonly marginMs: number;
  /**
   * The time after which the session tries the next server, while the attempt at the first one continues, in
   * milliseconds.
   */
  readonly staggerMs: number;
}

export function deriveSessionTiming(timeoutMs: number): SessionTiming {
  return {
    pingMs: timeoutMs / 12,
    doubtMs: timeoutMs / 6,
    dropMs: timeoutMs / 3,
    marginMs: Math.max(500, timeoutMs / 20),
    staggerMs: timeoutMs / 24,
  };
}

/**
 * Returns the time before which no server can have ended the session: the leader's timer started after `provenMs` and
 * runs for at least T.
 */
export function leaseEndMs(provenMs: number, timeoutMs: number): number {
  return provenMs + timeoutMs - deriveSessionTiming(timeoutMs).marginMs;
}

/**
 * Returns at least twice the time within which a follower reports a request to its leader, which is half a tick, in
 * milliseconds. `shortestMs` is the shortest timeout that the servers grant, by default two ticks. While it is unknown
 * (null), T is used instead. If an operator has configured a shorter minimum, the result is safe for ticks of up to
 * T/5, as docs/limits.md requires.
 */
export function leaderRelayMs(timeoutMs: number, shortestMs: number | null): number {
  return Math.min(timeoutMs / 4, Math.max(timeoutMs / 10, shortestMs ?? timeoutMs));
}

/** Returns the shortest remaining lease while all heartbeats are answered, in milliseconds. */
export function steadyLeaseMs(timeoutMs: number): number {
  const { marginMs, pingMs } = deriveSessionTiming(timeoutMs);
  return timeoutMs - marginMs - leaderRelayMs(timeoutMs, null) - 2 * pingMs;
}

export interface ConnectionLivenessFacts {
  /** The send time of the last heartbeat, or of a request that serves as a heartbeat. */
  readonly lastHeartbeatMs: number;
  readonly isHeartbeatPending: boolean;
  /** The send time of the oldest unanswered request; null if all are answered. */
  readonly oldestUnansweredMs: number | null;
}

export interface SessionHeartbeatDecision {
  readonly action: "trust" | "ping" | "doubt" | "drop";
  readonly nextCheckMs: number;
}

/**
 * Decides what to do with a connection. While one heartbeat is unanswered, another heartbeat would tell nothing more
 * about the connection, so no ping is sent. But a connection may be silent for longer than T/3 (`patienceMs`). On such
 * a connection a ping is sent every T/3, because the server counts the session's time from the bytes that it receives.
 */
export function decideSessionHeartbeat(
  nowMs: number,
  facts: ConnectionLivenessFacts,
  timeoutMs: number,
  patienceMs = deriveSessionTiming(timeoutMs).dropMs,
): SessionHeartbeatDecision {
  const timing = deriveSessionTiming(timeoutMs);
  const { lastHeartbeatMs, isHeartbeatPending } = facts;
  const pingAtMs = lastHeartbeatMs + timing.pingMs;
  const laterPingAtMs = lastHeartbeatMs + timing.dropMs;
  const doubtAtMs = doubtTimeMs(facts, patienceMs);
  const dropAtMs = doubtAtMs + patienceMs / 2;
  if (nowMs >= dropAtMs) return { action: "drop", nextCheckMs: nowMs };
  const isPingDue = nowMs >= (isHeartbeatPending ? laterPingAtMs : pingAtMs);
  if (isPingDue && (isHeartbeatPending || nowMs < doubtAtMs)) {
    return { action: "ping", nextCheckMs: Math.max(nowMs, Math.min(nowMs + timing.pingMs, doubtAtMs)) };
  }
  if (nowMs >= doubtAtMs) return { action: "doubt", nextCheckMs: Math.min(dropAtMs, Math.max(nowMs, laterPingAtMs)) };
  // Checks again at the time of the next ping, because the response to the current heartbeat may arrive at any time.
  return { action: "trust", nextCheckMs: Math.min(nowMs < pingAtMs ? pingAtMs : laterPingAtMs, doubtAtMs) };
}

function doubtTimeMs({ oldestUnansweredMs }: ConnectionLivenessFacts, patienceMs: number): number {
  return oldestUnansweredMs === null ? Infinity : oldestUnansweredMs + patienceMs / 2;
}

export function isConnectionDoubtful(nowMs: number, facts: ConnectionLivenessFacts, patienceMs: number): boolean {
  return nowMs >= doubtTimeMs(facts, patienceMs);
}

/** The longest silence of a connection that a session without a lease accepts, in milliseconds. */
const patienceMsMax = 120_000;

/**
 * Decides how long a connection may be silent. A session that keeps a lease gives a connection up after T/3, so that
 * another server can renew the lease in time. But a write takes as long as the server's disk needs, so on a slow server
 * no write would ever finish. A session therefore becomes more patient with each connection that it gives up although
 * the servers can be reached. A session with a lease does so only for its own requests, and leaves T/3 of the lease for
 * other servers. Pure.
 */
export class SilencePatience {
  /**
   * The limits while writes are unanswered, or only reads are; 0 while T/3 is enough. There are two limits, because
   * reads may be fast while writes are slow.
   */
  readonly #limitsMs = { write: 0, read: 0 };
  /** The number of consecutive connections that were given up although the servers can be reached. */
  rounds = 0;

  /**
   * Returns how long a connection may be silent, in milliseconds. `leaseMs` is how much of the lease remained when the
   * oldest request was sent; Infinity if there is no lease.
   */
  limitMs(timeoutMs: number, leaseMs: number): number {
    const { dropMs } = deriveSessionTiming(timeoutMs);
    return Math.max(dropMs, Math.min(this.#longestMs, leaseMs - dropMs));
  }

  get #longestMs(): number {
    return Math.max(this.#limitsMs.write, this.#limitsMs.read);
  }

  /** Records that a connection was given up while requests of this kind were unanswered. */
  gaveUp(timeoutMs: number, kind: ReadOrWriteRequest): void {
    this.rounds++;
    this.#limitsMs[kind] = Math.min(
      2 * Math.max(deriveSessionTiming(timeoutMs).dropMs, this.#longestMs),
      patienceMsMax,
    );
  }

  /**
   * Records how long a request took. The limit becomes three times that long, because the next request may wait for a
   * running flush and for its own.
   */
  answered(kind: ReadOrWriteRequest, ageMs: number): void {
    if (this.#limitsMs[kind] > 0) this.#limitsMs[kind] = 3 * ageMs;
    if (kind === "write" || this.#limitsMs.write === 0) this.rounds = 0;
  }
}

export type ReadOrWriteRequest = "write" | "read";

/**
 * Returns the time limit of an attempt to resume the session, in milliseconds. While the lease lasts, the limit is
 * short, to leave time for several attempts. Afterwards it is long enough for a slow ensemble.
 */
export function resumeAttemptMs(nowMs: number, leaseEndsMs: number, timeoutMs: number): number {
  return nowMs < leaseEndsMs ? timeoutMs / 6 : Math.max(1000, timeoutMs / 3);
}
