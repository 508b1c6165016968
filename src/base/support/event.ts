/** Events inside a process: OneTimeEvent happens once, ListenerSet again and again. */

/** An event that happens once: `set` ends all waits for it, present and future. */
export class OneTimeEvent {
  readonly #isSet = Promise.withResolvers<void>();

  /** Ends all waits. A bound function, so that it can be passed as a callback. */
  readonly set = (): void => this.#isSet.resolve();

  wait(): Promise<void> {
    return this.#isSet.promise;
  }
}

/** An event that happens any number of times. Each time, `notify` calls all listeners. */
export class ListenerSet {
  readonly #listeners = new Set<() => void>();

  /**
   * Adds a listener. A bound function, so that it can be passed as a callback. Returns the function that removes the
   * listener.
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
