/**
 * Whether this process had the machine to itself of late. A backend that was kept waiting reads requests late whose
 * callers have given them up meanwhile: when each began and ended is not what it sees.
 */
const everyMs = 20;
const lateMs = 150;
/** What was kept waiting is dealt with in so long. Milliseconds. */
const afterMs = 500;

export class HeartBeat {
  #lastMs = performance.now();
  #lateMs = -Infinity;
  readonly #timer = setInterval(() => this.#beat(), everyMs);

  wasLate(): boolean {
    this.#beat();
    return performance.now() - this.#lateMs < afterMs;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #beat(): void {
    const nowMs = performance.now();
    if (nowMs - this.#lastMs > lateMs) this.#lateMs = nowMs;
    this.#lastMs = nowMs;
  }
}
