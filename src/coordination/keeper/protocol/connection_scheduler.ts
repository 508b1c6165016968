/**
 * Divides the processor's time among connections with much input: a client with many requests then does not delay the
 * others. The connections take turns, each for a time slice. Between two rounds, the keeper polls its sockets.
 */

const sliceMs = 3;
/** How long a round lasts before the sockets are polled, in milliseconds. */
const roundMs = 6;

export interface ScheduledConnection {
  /** Works for one time slice. Schedules itself again if there is more to do. */
  runSlice(): void;
}

export interface ConnectionSchedulerOptions {
  /** Returns monotonic milliseconds. */
  readonly now: () => number;
  /** Calls back after the sockets have been polled. */
  readonly afterPoll: (callback: () => void) => void;
}

export class ConnectionScheduler {
  readonly #options: ConnectionSchedulerOptions;
  readonly #waiting = new Set<ScheduledConnection>();
  #isScheduled = false;

  constructor(options: ConnectionSchedulerOptions) {
    this.#options = options;
  }

  sliceEnd(): number {
    return this.#options.now() + sliceMs;
  }

  isOver(sliceEndMs: number): boolean {
    return this.#options.now() >= sliceEndMs;
  }

  /** Adds a connection that has more to do. */
  schedule(worker: ScheduledConnection): void {
    this.#waiting.add(worker);
    this.#scheduleRound();
  }

  remove(worker: ScheduledConnection): void {
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
      if (!this.#waiting.delete(worker)) continue; // removed during this round
      worker.runSlice();
      if (this.#options.now() >= endMs) break;
    }
    if (this.#waiting.size > 0) this.#scheduleRound();
  }
}
