/** Keeps the states of the items of one run of a pool, and decides which item is tried next. Pure. */

export interface PoolItemCounts {
  /** Items that this run has locked and started. */
  readonly claimed: number;
  readonly done: number;
  readonly failed: number;
  /** Items that another run held when they were last tried, or has processed since the list was requested. */
  readonly busy: number;
  /** Items that other runs of the shared list have done, or that have a kept result. */
  readonly skipped: number;
  /** Items that were not tried, because the run had no room or was stopped. */
  readonly remaining: number;
}

export class PoolWorkList {
  /** The items to try, in this order. */
  readonly #waiting = new Set<string>();
  readonly #busy = new Set<string>();
  /**
   * Items that other runs processed after the list was requested. Only a newer list says whether they should run again.
   */
  readonly #endedSince = new Set<string>();
  readonly #skipped = new Set<string>();
  readonly #running = new Set<string>();
  readonly #finished = new Set<string>();
  #counts = { claimed: 0, done: 0, failed: 0 };

  /** Removes items that are no longer listed, so that memory does not grow during a long run. */
  update(items: readonly string[]): void {
    const named = new Set(items);
    for (const set of [this.#waiting, this.#busy, this.#skipped, this.#finished]) {
      for (const item of set) if (!named.has(item)) set.delete(item);
    }
    this.#busy.clear();
    this.#endedSince.clear();
    this.#skipped.clear();
    for (const item of items) if (!this.#running.has(item) && !this.#finished.has(item)) this.#waiting.add(item);
  }

  /** Adds items that were not listed before, because the list comes in parts. */
  add(items: readonly string[]): void {
    for (const item of items) this.#waiting.add(item);
  }

  /** Removes all waiting items. Must be called before a new list is requested. */
  clearWaiting(): void {
    this.#waiting.clear();
  }

  nextWaitingItems(count: number): string[] {
    const items: string[] = [];
    for (const item of this.#waiting) {
      if (items.length >= count) break;
      items.push(item);
    }
    return items;
  }

  isWaiting(item: string): boolean {
    return this.#waiting.has(item);
  }

  waitingCount(): number {
    return this.#waiting.size;
  }

  isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  /** Moves items to the end of the list. */
  defer(items: Iterable<string>): void {
    for (const item of items) if (this.#waiting.delete(item)) this.#waiting.add(item);
  }

  markBusy(item: string): void {
    if (this.#waiting.delete(item)) this.#busy.add(item);
  }

  /** Notes that another run has processed the item since the list was requested. */
  markEndedSince(item: string): void {
    if (this.#waiting.delete(item)) this.#endedSince.add(item);
  }

  /** Returns whether a newer list is needed for some items. */
  isStale(): boolean {
    return this.#endedSince.size > 0;
  }

  /** Notes that another run of the shared list has done the item, or that the item has a kept result. */
  markSkipped(item: string): void {
    if (this.#waiting.delete(item)) this.#skipped.add(item);
  }

  markClaimed(item: string): void {
    this.#waiting.delete(item);
    this.#running.add(item);
  }

  /** Puts back a claimed item that was not started. It is the next item to try. */
  putBack(item: string): void {
    this.#running.delete(item);
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const one of [item, ...waiting]) this.#waiting.add(one);
  }

  markStarted(): void {
    this.#counts.claimed++;
  }

  markNotStarted(item: string): void {
    this.#counts.claimed--;
    this.putBack(item);
  }

  markEnded(item: string, result: "done" | "failed"): void {
    this.#running.delete(item);
    this.#finished.add(item);
    this.#counts[result]++;
  }

  /** Moves busy items to the end of the waiting items, so that they are tried again. */
  retryBusy(): void {
    for (const item of this.#busy) this.#waiting.add(item);
    this.#busy.clear();
  }

  /** Returns the number of items that wait or run. */
  unfinishedCount(): number {
    return this.#waiting.size + this.#running.size;
  }

  counts(): PoolItemCounts {
    return {
      ...this.#counts,
      busy: this.#busy.size + this.#endedSince.size,
      skipped: this.#skipped.size,
      remaining: this.#waiting.size,
    };
  }
}
