/** A one-time event: the first `set` releases all tasks that wait, those that wait already and those that wait later. */

export class Event {
  readonly #isSet = Promise.withResolvers<void>();

  /** Sets the event; a bound function, to be passed as a callback. */
  readonly set = (): void => this.#isSet.resolve();

  wait(): Promise<void> {
    return this.#isSet.promise;
  }
}
