/**
 * Time as sessions count it: monotonic, without the time in which this keeper itself could not listen. While it was
 * stopped, suspended, busy or waiting for its disk, no client could renew its session, so none may lose it for that.
 */
import type { Clock } from "../../support/clock.ts";

/** A timer that comes later than this was held up; earlier is what timers do. */
const lateMsMin = 50;

export class SessionClock {
  readonly #clock: Clock;
  readonly #intervalMs: number;
  #stalledMs = 0;
  #lastTickMs: number;

  /** `intervalMs`: how often `look` is going to be called. */
  constructor(clock: Clock, intervalMs: number) {
    this.#clock = clock;
    this.#intervalMs = intervalMs;
    this.#lastTickMs = clock.now();
  }

  now(): number {
    return this.#clock.now() - this.#stalledMs;
  }

  /** Time not counted so far. */
  get stalledMs(): number {
    return this.#stalledMs;
  }

  /** Compares the time since the last look with what it should be. `diskStalled`: nothing could be answered meanwhile. */
  tick(diskStalled: boolean): void {
    this.#clock.noticeSuspend();
    const nowMs = this.#clock.now();
    const elapsedMs = nowMs - this.#lastTickMs;
    this.#lastTickMs = nowMs;
    const lateMs = elapsedMs - this.#intervalMs;
    if (diskStalled) this.#stalledMs += elapsedMs;
    else if (lateMs > lateMsMin) this.#stalledMs += lateMs;
  }
}
