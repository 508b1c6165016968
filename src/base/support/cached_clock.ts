/** A clock that reads the system's time once in each task of the event loop, however many messages the task handles. */
import type { Clock } from "./clock.ts";

export class CachedClock {
  readonly #clock: Pick<Clock, "now">;
  #nowMs: number | null = null;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** Returns the time at which this task first asked, in milliseconds. */
  now(): number {
    if (this.#nowMs !== null) return this.#nowMs;
    queueMicrotask(this.#forget);
    return this.#nowMs = this.#clock.now();
  }

  readonly #forget = (): void => {
    this.#nowMs = null;
  };
}
