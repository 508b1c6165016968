/**
 * How much of a session's life the leader has vouched for. Only the leader ends sessions, and it counts from what it has
 * heard, not from what the server at hand has answered: a follower answers pings and reads by itself, also while it is
 * cut off, for up to syncLimit ticks; it tells the leader of its clients only when the leader asks, every half tick
 * (LearnerHandler, Leader.PING; Learner.ping). So an answer proves something only if it came through the leader, and what
 * it proves is older than itself: that the leader knows of everything sent a half tick before. Pure; knows no clock.
 */
import { multiCode, operations } from "../wire/jute/zookeeper_operations.ts";

const leaderCodes: ReadonlySet<number> = new Set([
  ...(["create", "create2", "createContainer", "createTtl", "delete", "setData", "setAcl", "sync"] as const)
    .map((name) => operations[name].code),
  multiCode,
]);

/** Whether an answer to this kind of request comes from the leader. */
export function provesByLeader(code: number): boolean {
  return leaderCodes.has(code);
}

/** Send times closer together than this share of the relay time are kept as the earlier one. */
const sendTimeGrain = 16;

export class LeaderProof {
  #relayMs: number;
  /** Send times, oldest first; at most one older than needed. */
  readonly #sentMs: number[] = [];
  #provenMs: number;

  /**
   * `relayMs`: how long a follower may take to tell its leader of a request, in milliseconds; 0 for a server that stands
   * alone. The handshake was answered by the leader: sessions are made and taken up again there.
   */
  constructor(relayMs: number, connectSentMs: number) {
    this.#relayMs = relayMs;
    this.#provenMs = connectSentMs;
  }

  /** More is known of the servers now: from here on a shorter time is enough. */
  shortenRelay(relayMs: number): void {
    this.#relayMs = Math.min(this.#relayMs, relayMs);
  }

  /** The send time of the last request that the leader is known to have heard of. */
  get provenMs(): number {
    return this.#provenMs;
  }

  /** Something is sent; times never go down. Returns the send time that its answer will prove, if it proves any. */
  sent(nowMs: number): number {
    if (this.#relayMs === 0) return nowMs;
    const sent = this.#sentMs;
    while (sent.length > 1 && (sent[1] as number) <= nowMs - this.#relayMs) sent.shift();
    const last = sent.at(-1);
    if (last === undefined || nowMs - last >= this.#relayMs / sendTimeGrain) sent.push(nowMs);
    const [oldest = nowMs] = sent;
    return oldest <= nowMs - this.#relayMs ? oldest : -Infinity;
  }

  /** A request of the kind `code` was answered; `provesMs` is what `sent` returned for it. */
  answered(code: number, err: number, provesMs: number): void {
    // A follower may refuse by itself; what it grants, the leader has granted.
    if (this.#relayMs > 0 && (err !== 0 || !provesByLeader(code))) return;
    this.#provenMs = Math.max(this.#provenMs, provesMs);
  }
}
