/**
 * The time that counts for sessions: monotonic, without the time in which the keeper itself was stalled. While it was stopped,
 * suspended, busy or waiting for its disk, no client could renew its session, so no session may expire for that.
 */
import type { Clock } from "../../support/clock.ts";

/** A timer that fires more than this late was held up by a stall. */
const lateMsMin = 50;

export class SessionClock {
  readonly #clock: Clock;
  readonly #intervalMs: number;
  #stalledMs = 0;
  #lastTickMs: number;

  /** `intervalMs`: the interval at which `tick` is called. */
  constructor(clock: Clock, intervalMs: number) {
    this.#clock = clock;
    this.#intervalMs = intervalMs;
    this.#lastTickMs = clock.now();
  }

  now(): number {
    return this.#clock.now() - this.#stalledMs;
  }

  /** Compares the time since the last tick with the interval. `diskStalled`: no request could be executed meanwhile. */
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
