/** Events inside a process: a OneTimeEvent happens one time, the event of a ListenerSet happens any number of times. */

/** An event that happens only one time. `set` ends all waits for it; later waits end immediately. */
export class OneTimeEvent {
  readonly #isSet = Promise.withResolvers<void>();

  /** Ends all waits. This is a bound function, so that it can be passed as a callback. */
  readonly set = (): void => this.#isSet.resolve();

  wait(): Promise<void> {
    return this.#isSet.promise;
  }
}

/** An event that happens any number of times. Each time, `notify` calls all listeners. */
export class ListenerSet {
  readonly #listeners = new Set<() => void>();

  /**
   * Adds a listener. Returns the function that removes the listener. This is a bound function, so that it can be passed
   * as a callback.
   */
  readonly subscribe = (listener: () => void): () => void => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  notify(): void {
    for (const listener of [...this.#listeners]) listener();
  }

  clear(): void {
    this.#listeners.clear();
  }
}
