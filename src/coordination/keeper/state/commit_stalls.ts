/**
 * Remembers slow commits, to give sessions more time. While the disk is slow, a keeper answers late, and a client that
 * waits for an answer may be silent. The keeper therefore extends a session's life by the longest commit since its last
 * request. The sum of all commits would be too long: on a disk that is always slow, the session of a dead client would
 * never end. Pure.
 */

interface Stall {
  readonly endMs: number;
  readonly durationMs: number;
}

export class KeeperCommitStalls {
  readonly #durationMsMin: number;
  readonly #keptMs: number;
  /**
   * The stalls, the newest last. Each stall is shorter than the stalls before it, because a longer stall replaces
   * shorter earlier ones.
   */
  #stalls: Stall[] = [];
  #startMs: number | null = null;

  /**
   * A commit is a stall if it takes longer than `durationMsMin`. The caller must ask only about sessions whose last
   * request came within `keptMs`.
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

  /** Returns the duration of the longest stall that ended after `sinceMs`, in milliseconds; 0 if there was no stall. */
  longestSince(sinceMs: number, nowMs: number): number {
    const found = this.#stalls.find(({ endMs }) => endMs > sinceMs)?.durationMs ?? 0;
    return Math.max(found, this.#runningAt(nowMs)?.durationMs ?? 0);
  }

  #runningAt(nowMs: number): Stall | null {
    if (this.#startMs === null || nowMs - this.#startMs <= this.#durationMsMin) return null;
    return { endMs: nowMs, durationMs: nowMs - this.#startMs };
  }
}
