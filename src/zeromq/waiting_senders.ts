/** Those who wait for room, or for messages: first come, first served, and each may give up by its signal. */
import { onAbort, throwIfAborted } from "../support/abort.ts";

interface Waiter {
  /** False: not yet. */
  readonly attempt: () => boolean;
  readonly reject: (reason: unknown) => void;
}

export class Waiting {
  readonly #waiters = new Set<Waiter>();
  #isPumping = false;
  #isPumpedAgain = false;

  get length(): number {
    return this.#waiters.size;
  }

  /**
   * Waits for a call of `pump` in which `attempt` gives something other than undefined; what it throws ends the wait as well.
   * Rejects with the signal's reason.
   */
  wait<T>(attempt: () => T | undefined, signal: AbortSignal | undefined): Promise<T> {
    throwIfAborted(signal);
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiters.delete(waiter);
        off();
      };
      const waiter: Waiter = {
        attempt() {
          const value = attempt();
          if (value === undefined) return false;
          leave();
          resolve(value);
          return true;
        },
        reject(reason) {
          leave();
          reject(reason);
        },
      };
      const off = onAbort(signal, (reason) => {
        this.#waiters.delete(waiter);
        reject(reason);
      });
      this.#waiters.add(waiter);
    });
  }

  /** Lets the first ones try, up to one that does not succeed. What they do may call for this again: it is done behind them. */
  pump(): void {
    this.#isPumpedAgain = true;
    if (this.#isPumping) return;
    this.#isPumping = true;
    while (this.#isPumpedAgain) {
      this.#isPumpedAgain = false;
      this.#pumpOnce();
    }
    this.#isPumping = false;
  }

  /** Ends every wait. */
  fail(reason: unknown): void {
    for (const waiter of [...this.#waiters]) waiter.reject(reason);
  }

  #pumpOnce(): void {
    for (const waiter of this.#waiters) {
      try {
        if (!waiter.attempt()) return;
      } catch (error) {
        waiter.reject(error);
      }
    }
  }
}
