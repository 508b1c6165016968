/**
 * The clock that decides when sessions expire. It is monotonic. It stands still while the keeper is stalled: stopped,
 * suspended, busy, or unable to store. That time does not count, because no client could renew its session.
 */
import type { Clock } from "../../../base/support/clock.ts";

/** A timer that fires later than by this many milliseconds was delayed by a stall. */
const lateMsMin = 50;

export class KeeperSessionClock {
  readonly #clock: Clock;
  readonly #intervalMs: number;
  #stalledMs = 0;
  #lastTickMs: number;

  /** The caller must call `tick` every `intervalMs` milliseconds. */
  constructor(clock: Clock, intervalMs: number) {
    this.#clock = clock;
    this.#intervalMs = intervalMs;
    this.#lastTickMs = clock.now();
  }

  /**
   * Returns the session time in milliseconds. It omits a stall even before the next tick: a request that is read before
   * that tick would otherwise extend its session by the stall.
   */
  now(): number {
    const nowMs = this.#clock.now();
    return nowMs - this.#lateMs(nowMs - this.#lastTickMs) - this.#stalledMs;
  }

  /**
   * Compares the time since the last tick with the interval. `diskStalled` is true if no change could be stored during
   * this time.
   */
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
