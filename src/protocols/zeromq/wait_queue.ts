/** Callers that wait for room or for messages: first come, first served. Each can stop by its signal. */
import { onAbort, throwIfAborted } from "../../base/support/abort.ts";

interface Waiter {
  /** Returns false if it is not yet possible. */
  readonly attempt: () => boolean;
  readonly reject: (reason: unknown) => void;
}

export class WaitQueue {
  readonly #waiters = new Set<Waiter>();
  #isPumping = false;
  #isPumpedAgain = false;

  get length(): number {
    return this.#waiters.size;
  }

  /**
   * Waits for a call of `pump` in which `attempt` returns a value; an error that it throws also ends the wait. Rejects
   * with the signal's reason.
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
      const off = onAbort(signal, waiter.reject);
      this.#waiters.add(waiter);
    });
  }

  /**
   * Lets the first waiters try, until one does not succeed. If a waiter calls this method again, the new run follows
   * the current one.
   */
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

  /** Ends every wait with an error. */
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
