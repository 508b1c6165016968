/** Events inside a process: OneTimeEvent happens once, ListenerSet again and again. */

/** An event that happens once: `set` ends all waits for it, present and future. */
export class OneTimeEvent {
  readonly #isSet = Promise.withResolvers<void>();

  /** Sets the event; a bound function, to be passed as a callback. */
  readonly set = (): void => this.#isSet.resolve();

  wait(): Promise<void> {
    return this.#isSet.promise;
  }
}

/** An event that happens any number of times; each time it calls all listeners. */
export class ListenerSet {
  readonly #listeners = new Set<() => void>();

  /** Adds a listener; a bound function. Returns a function that removes it. */
  readonly subscribe = (listener: () => void): () => void => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  /** Calls all listeners. */
  notify(): void {
    for (const listener of [...this.#listeners]) listener();
  }

  /** Removes all listeners. */
  clear(): void {
    this.#listeners.clear();
  }
}
