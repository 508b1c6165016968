/** A limit for the number of jobs that run on this host at the same time. */
import { abortable } from "../../src/support/abort.ts";

export class JobSlots {
  #free: number;
  readonly #waiting: PromiseWithResolvers<void>[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /** Waits for a slot, first come, first served. Rejects with the signal's reason. Dispose of the slot to free it. */
  async take(signal: AbortSignal): Promise<Disposable> {
    if (this.#free > 0) this.#free--;
    else {
      const turn = Promise.withResolvers<void>();
      this.#waiting.push(turn);
      try {
        await abortable(turn.promise, signal);
      } catch (thrown) {
        const index = this.#waiting.indexOf(turn);
        if (index === -1) this.#giveOn(); // it was given in the same moment
        else this.#waiting.splice(index, 1);
        throw thrown;
      }
    }
    return { [Symbol.dispose]: () => this.#giveOn() };
  }

  #giveOn(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free++;
    else next.resolve();
  }
}
