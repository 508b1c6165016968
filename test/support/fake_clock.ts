/** A clock whose hands the test turns. Timers run in the order of their times, each followed by all that it set off. */
import type { Clock } from "../../src/base/support/clock.ts";

interface Timer {
  readonly atMs: number;
  readonly callback: () => void;
}

export class FakeClock implements Clock {
  #nowMs: number;
  #timers: Timer[] = [];

  constructor(startMs = 1000) {
    this.#nowMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  noticeSuspend(): void {}

  startTimer(delayMs: number, callback: () => void): () => void {
    const timer = { atMs: this.#nowMs + Math.max(0, delayMs), callback };
    this.#timers.push(timer);
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer);
    };
  }

  /** Timers that wait. */
  get timers(): number {
    return this.#timers.length;
  }

  /** Lets `ms` pass; every timer that becomes due runs at its own time. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms;
    await settled();
    for (let timer = this.#next(endMs); timer !== undefined; timer = this.#next(endMs)) {
      this.#nowMs = Math.max(this.#nowMs, timer.atMs);
      this.#timers = this.#timers.filter((other) => other !== timer);
      timer.callback();
      await settled();
    }
    this.#nowMs = endMs;
  }

  /** The promise's outcome; time passes as it must, up to `withinMs`. `state` tells what there is when nobody moves. */
  async within<T>(
    promise: Promise<T>,
    { withinMs, state = () => "" }: { readonly withinMs: number; readonly state?: () => string },
  ): Promise<T> {
    let isDone = false;
    const mark = () => void (isDone = true);
    promise.then(mark, mark);
    await settled();
    for (let elapsedMs = 0; !isDone; elapsedMs += 100) {
      if (elapsedMs >= withinMs) throw new Error(`Nobody moves within ${withinMs} ms: ${state()}`);
      await this.advance(100);
    }
    return await promise;
  }

  /** The process is stopped: time passes and nothing runs. */
  stall(ms: number): void {
    this.#nowMs += ms;
  }

  /** Runs what is due, and nothing that this sets off: the start of one turn of the event loop. */
  runDue(): void {
    const due = this.#timers.filter((timer) => timer.atMs <= this.#nowMs).sort((a, b) => a.atMs - b.atMs);
    for (const timer of due) {
      if (!this.#timers.includes(timer)) continue;
      this.#timers = this.#timers.filter((other) => other !== timer);
      timer.callback();
    }
  }

  /** The process was stopped and goes on: what became due runs late. */
  async jump(ms: number): Promise<void> {
    this.stall(ms);
    await this.advance(0);
  }

  #next(endMs: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) if (timer.atMs <= endMs && (!first || timer.atMs < first.atMs)) first = timer;
    return first;
  }
}

/** Everything that was ready to run has run. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise((resolve) => setImmediate(resolve));
}
