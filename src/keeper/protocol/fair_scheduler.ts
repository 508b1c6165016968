/**
 * Who works when there is more to do than can be done at once: each for a slice of time, one after the other, and between two
 * rounds whatever has come in from others is looked at. Nobody's requests wait for those of one who sends many.
 */

/** How long one connection's requests are worked on before others have their turn, in milliseconds. */
const sliceMs = 3;
/** How long such slices are given before the sockets are looked at again. */
const roundMs = 6;

export interface Worker {
  /** Works for a slice, and asks for another when that was not enough. */
  work(): void;
}

export interface FairSchedulerOptions {
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Calls when the sockets have been looked at. */
  readonly afterPoll: (callback: () => void) => void;
}

export class FairScheduler {
  readonly #options: FairSchedulerOptions;
  readonly #waiting = new Set<Worker>();
  #isScheduled = false;

  constructor(options: FairSchedulerOptions) {
    this.#options = options;
  }

  /** Until when somebody may work who begins now. */
  sliceEnd(): number {
    return this.#options.now() + sliceMs;
  }

  isOver(sliceEndMs: number): boolean {
    return this.#options.now() >= sliceEndMs;
  }

  /** The worker has more to do. */
  schedule(worker: Worker): void {
    this.#waiting.add(worker);
    this.#scheduleRound();
  }

  remove(worker: Worker): void {
    this.#waiting.delete(worker);
  }

  #scheduleRound(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#options.afterPoll(() => {
      this.#isScheduled = false;
      this.#round();
    });
  }

  #round(): void {
    const endMs = this.#options.now() + roundMs;
    for (const worker of [...this.#waiting]) {
      if (!this.#waiting.delete(worker)) continue; // it left meanwhile
      worker.work();
      if (this.#options.now() >= endMs) break;
    }
    if (this.#waiting.size > 0) this.#scheduleRound();
  }
}
