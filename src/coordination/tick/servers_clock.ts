/** The servers' clock as a host knows it, so that it looks at ticks by that clock, however much its own one differs. */
import type { Clock } from "../../base/support/clock.ts";

/** If this host's clock was set or has drifted by this many milliseconds, the known difference is forgotten. */
const setMsMin = 500;
/** The servers are asked again after this time, because the clocks drift. Milliseconds. */
const keptMs = 3_600_000;
/** One of the schedules of a host asks, and the others wait this long for the answer. Milliseconds. */
const askedMs = 10_000;
/** The servers are asked again soon if the error is larger. Milliseconds. */
const errorMsMax = 100;

export class TickServersClock {
  readonly #clock: Clock;
  /** The wall clock of this host, in Unix milliseconds. */
  readonly wallMs: () => number;
  #known: { readonly aheadMs: number; readonly errorMs: number; readonly gapMs: number; readonly atMs: number } | null =
    null;
  #askedAtMs = -Infinity;

  constructor(clock: Clock, wallMs: () => number) {
    this.#clock = clock;
    this.wallMs = wallMs;
  }

  /** Returns the time of the servers in Unix milliseconds; that of this host while theirs is not known. */
  nowMs(): number {
    return this.wallMs() + (this.#current()?.aheadMs ?? 0);
  }

  /**
   * The servers have told their time: it was `serversMs` between `sentWallMs` on this host's clock and now. What is
   * known is never ahead of it; of several answers the highest bound counts, as long as the later ones do not rule it
   * out.
   */
  learn(serversMs: number, sentWallMs: number): void {
    const wallMs = this.wallMs();
    const atMs = this.#clock.now();
    const aheadMs = serversMs - wallMs;
    const aheadMsMax = serversMs - sentWallMs;
    const known = this.#current();
    const isKnown = known !== null && atMs < known.atMs + keptMs;
    if (isKnown && known.aheadMs >= aheadMs && known.aheadMs <= aheadMsMax) return;
    this.#known = { aheadMs, errorMs: wallMs - sentWallMs, gapMs: wallMs - atMs, atMs };
  }

  /** Returns true if the servers are to be asked, and the caller has to do it. */
  takeQuestion(): boolean {
    const known = this.#current();
    const nowMs = this.#clock.now();
    if (known !== null && known.errorMs <= errorMsMax && nowMs < known.atMs + keptMs) return false;
    if (nowMs < this.#askedAtMs + askedMs) return false;
    this.#askedAtMs = nowMs;
    return true;
  }

  #current() {
    const gapMs = this.wallMs() - this.#clock.now();
    if (this.#known !== null && Math.abs(gapMs - this.#known.gapMs) > setMsMin) this.#known = null;
    return this.#known;
  }
}
