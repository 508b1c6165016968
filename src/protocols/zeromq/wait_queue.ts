/**
 * A queue of callers that wait for room or for messages, served in order. Each caller can end its wait with a signal.
 */
import { onAbort, throwIfAborted } from "../../base/support/abort.ts";

interface Waiter {
  /** Tries to serve the caller. Returns false if the caller must wait longer. */
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
   * Waits until `attempt`, which `pump` calls, returns a value or throws. Rejects with the signal's reason.
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
   * Calls the attempts of the waiters in order, until one does not succeed. If an attempt calls `pump` itself, another
   * run follows the current one.
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

  /** Ends all waits with an error. */
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
