/** Detects that the wall clock was set, which moves every scheduled time. Pure. */

/** Tolerance for two consecutive readings, and for a clock that is adjusted slowly. Milliseconds. */
const stepMsMin = 1000;

export class ClockSteps {
  #gapMs: number;

  /** Readings of the monotonic clock and the wall clock at the same moment, in milliseconds. */
  constructor(nowMs: number, wallMs: number) {
    this.#gapMs = wallMs - nowMs;
  }

  /** How far the wall clock was set since the last call, in milliseconds; negative: back; 0: it was not set. */
  sinceLastCheck(nowMs: number, wallMs: number): number {
    const byMs = wallMs - nowMs - this.#gapMs;
    if (Math.abs(byMs) < stepMsMin) return 0;
    this.#gapMs += byMs;
    return byMs;
  }
}
