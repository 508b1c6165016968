/**
 * Computes up to when the leader is known to have heard from a session. Only the leader ends sessions, and it counts
 * from the requests that it has heard of. A follower answers pings and reads itself, even while it is disconnected from
 * the leader, for up to syncLimit ticks. It reports its clients only when the leader asks, every half tick
 * (LearnerHandler, Leader.PING; Learner.ping). Therefore a response proves something only if it came through the
 * leader, and it proves less than its own time: the leader knows of all requests that were sent half a tick earlier.
 * Pure; uses no clock.
 */
import { multiOperationCode, zooKeeperOperations } from "./jute/zookeeper_operations.ts";

const leaderCodes: ReadonlySet<number> = new Set([
  ...(["create", "create2", "createContainer", "createTtl", "delete", "setData", "setAcl", "sync"] as const)
    .map((name) => zooKeeperOperations[name].code),
  multiOperationCode,
]);

/** Returns whether the leader answers this kind of request. */
export function isAnsweredByLeader(code: number): boolean {
  return leaderCodes.has(code);
}

/** Send times closer than this fraction of the relay time are merged into the earlier one. */
const sendTimeGrain = 16;

export class LeaderProof {
  #relayMs: number;
  /** Send times, oldest first; at most one is older than needed. */
  readonly #sentMs: number[] = [];
  /** The send time of the last request that the leader is known to have heard of. */
  provenMs: number;

  /**
   * `relayMs`: the time in milliseconds within which a follower reports a request to its leader; 0 for a standalone
   * server. The leader has answered the handshake itself, because it creates and resumes sessions.
   */
  constructor(relayMs: number, connectSentMs: number) {
    this.#relayMs = relayMs;
    this.provenMs = connectSentMs;
  }

  shortenRelay(relayMs: number): void {
    this.#relayMs = Math.min(this.#relayMs, relayMs);
  }

  /**
   * Records a sent request; times never decrease. Returns the send time that its response will prove; -Infinity if
   * none.
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

  /** Records the response to a request of this kind; `provesMs` is the result of `recordSent` for it. */
  recordResponse(code: number, err: number, provesMs: number): void {
    // A follower may refuse a request itself, but only the leader grants one.
    if (this.#relayMs > 0 && (err !== 0 || !isAnsweredByLeader(code))) return;
    this.provenMs = Math.max(this.provenMs, provesMs);
  }
}
