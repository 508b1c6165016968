/**
 * Combines calls into batches, so that one round trip or one flush serves many calls. Calls that arrive while a batch
 * is processed form the next batch.
 */

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result) => void;
  readonly reject: (error: unknown) => void;
}

export interface CallBatcherOptions<Item, Result> {
  /**
   * Processes one batch at a time. Returns a result for each item, in the same order. If it rejects, all calls of the
   * batch reject.
   */
  readonly work: (items: readonly Item[]) => Promise<readonly Result[]>;
  readonly itemsMax: number;
  /** Returns the size of an item. The sizes in a batch of several items add up to at most `sizeMax`. */
  readonly sizeOf?: (item: Item) => number;
  readonly sizeMax?: number;
}

export class CallBatcher<Item, Result> {
  readonly #options: CallBatcherOptions<Item, Result>;
  #waiting: Waiting<Item, Result>[] = [];
  #isWorking = false;

  constructor(options: CallBatcherOptions<Item, Result>) {
    this.#options = options;
  }

  add(item: Item): Promise<Result> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ item, resolve, reject });
      if (this.#isWorking) return;
      this.#isWorking = true;
      // Items added in the same turn of the event loop belong to the first batch.
      queueMicrotask(() => void this.#workOnAll());
    });
  }

  async #workOnAll(): Promise<void> {
    while (this.#waiting.length > 0) {
      const group = this.#takeGroup();
      try {
        const results = await this.#options.work(group.map(({ item }) => item));
        group.forEach(({ resolve }, at) => resolve(results[at] as Result));
      } catch (error) {
        for (const { reject } of group) reject(error);
      }
    }
    this.#isWorking = false;
  }

  #takeGroup(): Waiting<Item, Result>[] {
    const { itemsMax, sizeOf = () => 0, sizeMax = Infinity } = this.#options;
    let size = 0;
    const end = this.#waiting.findIndex(({ item }, at) => (size += sizeOf(item)) > sizeMax && at > 0);
    return this.#waiting.splice(0, Math.min(itemsMax, end < 0 ? this.#waiting.length : end));
  }
}
