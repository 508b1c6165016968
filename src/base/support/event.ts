/** Events inside a process: one that happens once, and one that happens again and again. */

/**
 * A one-time event: the first `set` releases all tasks that wait, those that wait already and those that wait later.
 */
export class OneTimeEvent {
  readonly #isSet = Promise.withResolvers<void>();

  /** Sets the event; a bound function, to be passed as a callback. */
  readonly set = (): void => this.#isSet.resolve();

  wait(): Promise<void> {
    return this.#isSet.promise;
  }
}

/** An event that may happen any number of times: each time all listeners are called. */
export class ListenerSet {
  readonly #listeners = new Set<() => void>();

  /** Adds a listener; a bound function. Returns a function that removes it. */
  readonly subscribe = (listener: () => void): () => void => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  /** Calls the listeners of this moment. */
  notify(): void {
    for (const listener of [...this.#listeners]) listener();
  }

  /** Removes all listeners. */
  clear(): void {
    this.#listeners.clear();
  }
}
