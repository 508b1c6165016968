/**
 * The commits that took long, and what sessions get for them. While its disk is slow, a keeper hears its clients, but
 * it answers them late, and a client that waits for an answer may be silent. A session therefore gets the time of the
 * longest commit since it was heard of. It does not get the time of all of them: on a disk that is always slow the
 * session of a dead client would never end. Pure.
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
   * Commits that take no longer than `durationMsMin` are no stalls. Sessions are asked about that were heard of within
   * `keptMs`.
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

  /** The longest commit that was not over at `sinceMs`, in milliseconds; 0 if none was a stall. */
  longestSince(sinceMs: number, nowMs: number): number {
    const found = this.#stalls.find(({ endMs }) => endMs > sinceMs)?.durationMs ?? 0;
    return Math.max(found, this.#runningAt(nowMs)?.durationMs ?? 0);
  }

  #runningAt(nowMs: number): Stall | null {
    if (this.#startMs === null || nowMs - this.#startMs <= this.#durationMsMin) return null;
    return { endMs: nowMs, durationMs: nowMs - this.#startMs };
  }
}
