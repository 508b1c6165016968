/**
 * Decides what a session does, and when. Pure: takes ages, returns decisions. All times are monotonic, in milliseconds.
 */

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
 * The time up to which no server can have ended the session: its timer started after `provenMs` and runs for at least
 * T.
 */
export function leaseEndMs(provenMs: number, timeoutMs: number): number {
  return provenMs + timeoutMs - deriveSessionTiming(timeoutMs).marginMs;
}

/**
 * The time within which a follower reports a request to its leader: half a tick. `shortestMs` is the shortest timeout
 * that the servers grant, two ticks by default. While it is unknown (null), T is used instead. A configured minimum
 * that is shorter is covered for ticks of up to T/5, as docs/limits.md requires.
 */
export function leaderRelayMs(timeoutMs: number, shortestMs: number | null): number {
  return Math.min(timeoutMs / 4, Math.max(timeoutMs / 10, shortestMs ?? timeoutMs));
}

/** The least remaining lease while each heartbeat gets its response. */
export function steadyLeaseMs(timeoutMs: number): number {
  const { marginMs, pingMs } = deriveSessionTiming(timeoutMs);
  return timeoutMs - marginMs - leaderRelayMs(timeoutMs, null) - 2 * pingMs;
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

/**
 * Decides what to do with a connection. A heartbeat without response shows the connection's health as well as another
 * one would. A connection that may be silent for longer than T/3 (`patienceMs`) is doubted at half of that time, and
 * carries a heartbeat every T/3: the server counts the session's time from what it receives, not from what it has
 * answered.
 */
export function decideHeartbeat(
  nowMs: number,
  facts: LivenessFacts,
  timeoutMs: number,
  patienceMs = deriveSessionTiming(timeoutMs).dropMs,
): HeartbeatDecision {
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
  // The response to a heartbeat may arrive at any time, and then the next heartbeat is due before the doubt would be.
  return { action: "trust", nextCheckMs: Math.min(nowMs < pingAtMs ? pingAtMs : laterPingAtMs, doubtAtMs) };
}

function doubtTimeMs({ oldestUnansweredMs }: LivenessFacts, patienceMs: number): number {
  return oldestUnansweredMs === null ? Infinity : oldestUnansweredMs + patienceMs / 2;
}

export function isConnectionDoubtful(nowMs: number, facts: LivenessFacts, patienceMs: number): boolean {
  return nowMs >= doubtTimeMs(facts, patienceMs);
}

/** The longest silence of a connection that a session without a lease accepts, in milliseconds. */
const patienceMsMax = 120_000;

/**
 * How long a connection may be silent. A session that keeps a lease gives a connection up after T/3, so that another
 * server can renew the lease in time. But a write takes as long as the server's disk, and a server that is only slow
 * would never finish a write that is given up sooner. A session therefore becomes more patient with each connection
 * that it has given up while the servers could be reached; one that keeps a lease does so only for its own requests,
 * and leaves T/3 of the lease for other servers. Pure.
 */
export class SilencePatience {
  /**
   * The limits for connections on which writes, or only reads, are on their way; 0 while T/3 is enough. Fast reads say
   * nothing of writes.
   */
  readonly #limitsMs = { write: 0, read: 0 };
  /** The consecutive connections that were given up although the servers can be reached. */
  rounds = 0;

  /** `leaseMs`: the part of a lease that its keeper has left when it sends a request; Infinity without a lease. */
  limitMs(timeoutMs: number, leaseMs: number): number {
    const { dropMs } = deriveSessionTiming(timeoutMs);
    return Math.max(dropMs, Math.min(this.#longestMs, leaseMs - dropMs));
  }

  get #longestMs(): number {
    return Math.max(this.#limitsMs.write, this.#limitsMs.read);
  }

  /** A connection was given up while requests of this kind had no response. */
  gaveUp(timeoutMs: number, kind: RequestKind): void {
    this.rounds++;
    this.#limitsMs[kind] = Math.min(
      2 * Math.max(deriveSessionTiming(timeoutMs).dropMs, this.#longestMs),
      patienceMsMax,
    );
  }

  /** Records how long a request took. The next one may have to wait for a flush that is running, and for its own. */
  answered(kind: RequestKind, ageMs: number): void {
    if (this.#limitsMs[kind] > 0) this.#limitsMs[kind] = 3 * ageMs;
    if (kind === "write" || this.#limitsMs.write === 0) this.rounds = 0;
  }
}

export type RequestKind = "write" | "read";

/**
 * The time limit of one attempt to resume the session. While the lease lasts it leaves time for several attempts;
 * afterwards it is long enough for a slow ensemble.
 */
export function resumeAttemptMs(nowMs: number, leaseEndsMs: number, timeoutMs: number): number {
  return nowMs < leaseEndsMs ? timeoutMs / 6 : Math.max(1000, timeoutMs / 3);
}
