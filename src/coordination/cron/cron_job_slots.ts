/** Limits the number of cron jobs that run on this host at the same time. Each running job has a slot. */
import { rejectOnAbort } from "../../base/support/abort.ts";

export class CronJobSlots {
  #free: number;
  readonly #waiting: PromiseWithResolvers<void>[] = [];

  constructor(count: number) {
    this.#free = count;
  }

  /** Waits for a slot in the order of the calls. Rejects with the signal's reason. Disposing of the slot frees it. */
  async take(signal: AbortSignal): Promise<CronJobSlot> {
    await this.#take(signal, { isFirst: false });
    return this.#slot(true);
  }

  /** Returns a slot that is not taken yet, for a call that rarely runs a tick. `return` takes the slot if necessary. */
  untaken(): CronJobSlot {
    return this.#slot(false);
  }

  #slot(isTaken: boolean): CronJobSlot {
    const owner = { take: (signal: AbortSignal) => this.#take(signal, { isFirst: true }), free: () => this.#giveOn() };
    return new CronJobSlot(owner, isTaken);
  }

  async #take(signal: AbortSignal, { isFirst }: { readonly isFirst: boolean }): Promise<void> {
    if (this.#free > 0) this.#free--;
    else {
      const turn = Promise.withResolvers<void>();
      if (isFirst) this.#waiting.unshift(turn);
      else this.#waiting.push(turn);
      try {
        await rejectOnAbort(turn.promise, signal);
      } catch (thrown) {
        const index = this.#waiting.indexOf(turn);
        if (index === -1) this.#giveOn(); // the slot was given at the same moment, so it goes to the next job
        else this.#waiting.splice(index, 1);
        throw thrown;
      }
    }
  }

  #giveOn(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free++;
    else next.resolve();
  }
}

interface SlotOwner {
  readonly take: (signal: AbortSignal) => Promise<void>;
  readonly free: () => void;
}

/** A slot for one cron job. A job can leave its slot while it waits for its lock, which may take hours. */
export class CronJobSlot implements Disposable {
  readonly #of: SlotOwner;
  #isTaken: boolean;

  constructor(of: SlotOwner, isTaken: boolean) {
    this.#of = of;
    this.#isTaken = isTaken;
  }

  leave(): void {
    if (this.#isTaken) this.#of.free();
    this.#isTaken = false;
  }

  /**
   * Takes the slot again if the job has left it. Jobs that return come before jobs that wait for their first slot.
   * Rejects with the signal's reason.
   */
  async return(signal: AbortSignal): Promise<void> {
    if (this.#isTaken) return;
    await this.#of.take(signal);
    this.#isTaken = true;
  }

  [Symbol.dispose](): void {
    this.leave();
  }
}
