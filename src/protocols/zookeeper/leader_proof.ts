/**
 * Computes the time up to which the ensemble's leader has certainly heard of a session. Only the leader ends sessions,
 * and it counts from the requests that it has heard of. A follower answers pings and reads itself, for up to syncLimit
 * ticks even while it is disconnected from the leader. The leader asks its followers for their clients every half tick
 * (LearnerHandler, Leader.PING; Learner.ping). A response therefore proves something only if it came through the
 * leader. Such a response proves that the leader knows of all requests that were sent half a tick earlier. Pure; uses
 * no clock.
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

export class LeaderProof {
  #relayMs: number;
  /** The send times of requests, oldest first. At most one of them is older than needed. */
  readonly #sentMs: number[] = [];
  /** The send time of the last request that the leader has certainly heard of. */
  provenMs: number;

  /**
   * `relayMs` is the time in milliseconds within which a follower reports a request to its leader; 0 for a standalone
   * server. The handshake counts as proof, because the leader itself creates and resumes sessions.
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
    const sent = this.#sentMs;
    while (sent.length > 1 && (sent[1] as number) <= nowMs - this.#relayMs) sent.shift();
    const last = sent.at(-1);
    if (last === undefined || nowMs - last >= this.#relayMs / sendTimeGrain) sent.push(nowMs);
    const [oldest = nowMs] = sent;
    return oldest <= nowMs - this.#relayMs ? oldest : -Infinity;
  }

  /** Records the response to a request. `provesMs` is the value that `recordSent` returned for the request. */
  recordResponse(code: number, err: number, provesMs: number): void {
    // A follower may refuse such a request itself, but only the leader can grant it.
    if (this.#relayMs > 0 && (err !== 0 || !isAnsweredByLeader(code))) return;
    this.provenMs = Math.max(this.provenMs, provesMs);
  }
}
