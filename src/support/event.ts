/** One waiting for any of several things: rung once, heard by whoever waits, before or after. */

export class Alarm {
  readonly rung: Promise<void>;
  readonly #resolve: () => void;

  constructor() {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.rung = promise;
    this.#resolve = resolve;
  }

  readonly ring = (): void => this.#resolve();
}
