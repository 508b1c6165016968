/** A clock that reads the system's time once in each task of the event loop, even if the task handles many messages. */
import type { Clock } from "./clock.ts";

export class CachedClock {
  readonly #clock: Pick<Clock, "now">;
  #nowMs: number | null = null;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** Returns the time of the first call in this task, in milliseconds. */
  now(): number {
    if (this.#nowMs !== null) return this.#nowMs;
    queueMicrotask(this.#forget);
    return this.#nowMs = this.#clock.now();
  }

  readonly #forget = (): void => {
    this.#nowMs = null;
  };
}
