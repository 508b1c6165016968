/** Notices that the wall clock was set: everything that waits for a time of it moves along. Pure. */

/** What two readings one after the other, and a clock that is slowly put right, may be apart. Milliseconds. */
const stepMsMin = 1000;

export class ClockSteps {
  #gapMs: number;

  /** Monotonic milliseconds, and the wall clock's, of the same moment. */
  constructor(nowMs: number, wallMs: number) {
    this.#gapMs = wallMs - nowMs;
  }

  /** By how much it was set since the last look, in milliseconds; negative: back; 0: it was not. */
  sinceLastCheck(nowMs: number, wallMs: number): number {
    const byMs = wallMs - nowMs - this.#gapMs;
    if (Math.abs(byMs) < stepMsMin) return 0;
    this.#gapMs += byMs;
    return byMs;
  }
}
