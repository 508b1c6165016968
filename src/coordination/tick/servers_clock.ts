/** Estimates the servers' clock. A host then finds due ticks by the servers' clock, even if its own clock is wrong. */
import type { Clock } from "../../base/support/clock.ts";

/**
 * If the host's clock changes by more than this, in milliseconds, the known difference to the servers' clock is
 * discarded.
 */
const setMsMin = 500;
/**
 * How long a known difference is used, in milliseconds. After that, the servers are asked again, because the clocks
 * drift.
 */
const keptMs = 3_600_000;
/** How long other schedules of this host wait after one schedule has asked the servers, in milliseconds. */
const askedMs = 10_000;
/** If the known difference may be wrong by more than this, in milliseconds, the servers are asked again soon. */
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

  /** Returns the servers' time in Unix milliseconds; the host's time if the servers' time is not known. */
  nowMs(): number {
    return this.wallMs() + (this.#current()?.aheadMs ?? 0);
  }

  /**
   * Records an answer of the servers: their clock showed `serversMs` at some time between `sentWallMs` on this host's
   * clock and now. The estimate is never ahead of the servers' clock. Of several answers, the highest estimate is kept,
   * unless a later answer contradicts it.
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

  /** Returns true if the caller must ask the servers for their time. Returns true only to one caller at a time. */
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
