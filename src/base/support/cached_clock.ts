/** A clock that reads the system's time once for all messages that the event loop handles in one task. */
import type { Clock } from "./clock.ts";

export class CachedClock {
  readonly #clock: Pick<Clock, "now">;
  #nowMs: number | null = null;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** Milliseconds, read from the clock once per task of the event loop. */
  now(): number {
    if (this.#nowMs !== null) return this.#nowMs;
    queueMicrotask(this.#forget);
    return this.#nowMs = this.#clock.now();
  }

  readonly #forget = (): void => {
    this.#nowMs = null;
  };
}
