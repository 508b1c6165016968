/**
 * The clock that decides when sessions expire. It is monotonic, and stands still while the keeper is stalled: stopped,
 * suspended, busy, or unable to store. No client could renew its session during that time, so it must not count.
 */
import type { Clock } from "../../../base/support/clock.ts";

/** A timer that fires more than this late was held up by a stall. */
const lateMsMin = 50;

export class KeeperSessionClock {
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

  /**
   * Returns the session time. It leaves out a stall even before the next tick: otherwise a request that is read in
   * between would give its session the time of the stall in addition.
   */
  now(): number {
    const nowMs = this.#clock.now();
    return nowMs - this.#lateMs(nowMs - this.#lastTickMs) - this.#stalledMs;
  }

  /** Compares the time since the last tick with the interval. `diskStalled`: no change could be made meanwhile. */
  tick(diskStalled: boolean): void {
    this.#clock.noticeSuspend();
    const nowMs = this.#clock.now();
    const elapsedMs = nowMs - this.#lastTickMs;
    this.#lastTickMs = nowMs;
    this.#stalledMs += diskStalled ? elapsedMs : this.#lateMs(elapsedMs);
  }

  /** Returns by how much a tick after `elapsedMs` is late; 0 if the delay is too short for a stall. */
  #lateMs(elapsedMs: number): number {
    const lateMs = elapsedMs - this.#intervalMs;
    return lateMs > lateMsMin ? lateMs : 0;
  }
}
