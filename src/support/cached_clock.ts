/** The time of this turn of the program: where many messages come together, the system is asked once for all of them. */
import type { Clock } from "./clock.ts";

export class TurnClock {
  readonly #clock: Pick<Clock, "now">;
  #nowMs: number | null = null;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** In milliseconds, as the clock has said it first since the last `await` of whoever runs. */
  now(): number {
    if (this.#nowMs !== null) return this.#nowMs;
    queueMicrotask(this.#forget);
    return this.#nowMs = this.#clock.now();
  }

  readonly #forget = (): void => {
    this.#nowMs = null;
  };
}
