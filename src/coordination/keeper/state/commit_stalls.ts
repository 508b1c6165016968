/**
 * Knows the commits that took long, for which sessions get more time. While its disk is slow, a keeper answers late,
 * and a client that waits for an answer may be silent. A session therefore lives longer by the longest commit since its
 * last request. It does not live longer by all of them: on a disk that is always slow, the session of a dead client
 * would never end. Pure.
 */

interface Stall {
  readonly endMs: number;
  readonly durationMs: number;
}

export class KeeperCommitStalls {
  readonly #durationMsMin: number;
  readonly #keptMs: number;
  /** The newest last. Each one is shorter than those before it: a longer one replaces them. */
  #stalls: Stall[] = [];
  #startMs: number | null = null;

  /**
   * A commit is a stall if it takes longer than `durationMsMin`. The caller asks only about sessions whose last request
   * came within `keptMs`.
   */
  constructor({ durationMsMin, keptMs }: { readonly durationMsMin: number; readonly keptMs: number }) {
    this.#durationMsMin = durationMsMin;
    this.#keptMs = keptMs;
  }

  begin(nowMs: number): void {
    this.#startMs = nowMs;
  }

  end(nowMs: number): void {
    const stall = this.#runningAt(nowMs);
    this.#startMs = null;
    if (stall === null) return;
    const isKept = ({ endMs, durationMs }: Stall) => durationMs > stall.durationMs && endMs > nowMs - this.#keptMs;
    this.#stalls = [...this.#stalls.filter(isKept), stall];
  }

  /** Returns how long the longest stall that ended after `sinceMs` took, in milliseconds; 0 if there was none. */
  longestSince(sinceMs: number, nowMs: number): number {
    const found = this.#stalls.find(({ endMs }) => endMs > sinceMs)?.durationMs ?? 0;
    return Math.max(found, this.#runningAt(nowMs)?.durationMs ?? 0);
  }

  #runningAt(nowMs: number): Stall | null {
    if (this.#startMs === null || nowMs - this.#startMs <= this.#durationMsMin) return null;
    return { endMs: nowMs, durationMs: nowMs - this.#startMs };
  }
}
