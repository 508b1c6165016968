/**
 * The time that counts for sessions: monotonic, without the time in which the keeper itself was stalled. While it was
 * stopped, suspended, busy or without a disk that stores, no client could renew its session, so no session may expire
 * for that.
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
   * A request may be read before the tick that notices the stall: its session must not get the time of the stall in
   * addition.
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

  /** The time by which a tick after `elapsedMs` is late; 0 for a delay that is no stall. */
  #lateMs(elapsedMs: number): number {
    const lateMs = elapsedMs - this.#intervalMs;
    return lateMs > lateMsMin ? lateMs : 0;
  }
}
