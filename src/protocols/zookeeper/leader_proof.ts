/**
 * Computes the time up to which the ensemble's leader has certainly heard of a session. Only the leader ends sessions,
 * and it counts from the requests that it has heard of. A follower answers pings and reads itself, for up to syncLimit
 * ticks even while it is disconnected from the leader. The leader asks its followers for their clients every half tick
 * (LearnerHandler, Leader.PING; Learner.ping). A response therefore proves something only if it came through the
 * leader. Such a response proves that the leader knows of all requests that the follower had received half a tick
 * before. That a request was sent does not show that it was received: a network may hold several requests back and
 * deliver them together. Only the response to a request shows it. Pure; uses no clock.
 */
import { multiOperationCode, zooKeeperOperations } from "./jute/zookeeper_operations.ts";

const leaderCodes: ReadonlySet<number> = new Set([
  ...(["create", "create2", "createContainer", "createTtl", "delete", "setData", "setAcl", "sync"] as const)
    .map((name) => zooKeeperOperations[name].code),
  multiOperationCode,
]);

/** Returns true if the leader itself answers this kind of request. */
export function isAnsweredByLeader(code: number): boolean {
  return leaderCodes.has(code);
}

/**
 * The precision of remembered send times: if two of them differ by less than the relay time divided by this number,
 * they are merged into the earlier one.
 */
const sendTimeGrain = 16;

interface RecordedRequest {
  readonly sentMs: number;
  /** The time at which the response was read; Infinity before that. */
  answeredMs: number;
}

export class LeaderProof {
  #relayMs: number;
  /** Requests in the order of their send times. At most one that counts is older than needed. */
  readonly #sent: RecordedRequest[] = [];
  /** The send time of the last request that the leader has certainly heard of. */
  provenMs: number;

  /**
   * `relayMs` is at least twice the time in milliseconds within which a follower reports a request to its leader; 0 for
   * a standalone server. The handshake counts as proof, because the leader itself creates and resumes sessions.
   */
  constructor(relayMs: number, connectSentMs: number) {
    this.#relayMs = relayMs;
    this.provenMs = connectSentMs;
  }

  shortenRelay(relayMs: number): void {
    this.#relayMs = Math.min(this.#relayMs, relayMs);
  }

  /**
   * Records a sent request. `nowMs` must never decrease. If the leader answers this request, returns the send time of
   * the last request that the leader then knows of; otherwise returns -Infinity.
   */
  recordSent(nowMs: number): number {
    if (this.#relayMs === 0) return nowMs;
    const sent = this.#sent;
    while (this.#isReported(sent[1], nowMs)) sent.shift();
    const lastMs = sent.at(-1)?.sentMs ?? -Infinity;
    if (nowMs - lastMs >= this.#relayMs / sendTimeGrain) sent.push({ sentMs: nowMs, answeredMs: Infinity });
    const [first] = sent;
    return this.#isReported(first, nowMs) ? first.sentMs : -Infinity;
  }

  /**
   * Records the response to a request, which was read at `nowMs`. `provesMs` is the value that `recordSent` returned
   * for the request. The server answers requests in their order.
   */
  recordResponse(
    { code, sentMs, provesMs }: { readonly code: number; readonly sentMs: number; readonly provesMs: number },
    { err, nowMs }: { readonly err: number; readonly nowMs: number },
  ): void {
    for (const request of this.#sent) {
      if (request.sentMs > sentMs) break;
      request.answeredMs = Math.min(request.answeredMs, nowMs);
    }
    // A follower may refuse such a request itself, but only the leader can grant it.
    if (this.#relayMs > 0 && (err !== 0 || !isAnsweredByLeader(code))) return;
    this.provenMs = Math.max(this.provenMs, provesMs);
  }

  /** Returns true if the follower reports this request before it passes on a request that is sent at `nowMs`. */
  #isReported(request: RecordedRequest | undefined, nowMs: number): request is RecordedRequest {
    return request !== undefined && request.sentMs <= nowMs - this.#relayMs &&
      request.answeredMs <= nowMs - this.#relayMs / 2;
  }
}
