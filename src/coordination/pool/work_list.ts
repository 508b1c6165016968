/** Which items of a pool one run has before it, and what became of the others. Pure: it decides what is tried next. */

export interface PoolCounts {
  /** Locks of items that this run was granted and used. */
  readonly claimed: number;
  readonly done: number;
  readonly failed: number;
  /** Held by others when they were last tried, or when the list was begun. */
  readonly busy: number;
  /** Ended well before, within the time that is remembered. */
  readonly skipped: number;
  /** Not tried: there was no room for them, or the run was to end. */
  readonly remaining: number;
}

export class WorkList {
  /** In the order in which they are tried. */
  readonly #waiting = new Set<string>();
  readonly #busy = new Set<string>();
  /** Those that others have ended since the list was begun: the list says nothing of them. */
  readonly #endedSince = new Set<string>();
  /** Those of the waiting that were busy before. */
  readonly #retried = new Set<string>();
  readonly #skipped = new Set<string>();
  readonly #running = new Set<string>();
  /** They have had their turn in this run. */
  readonly #finished = new Set<string>();
  #counts = { claimed: 0, done: 0, failed: 0 };

  /** What a list names now. What it names no more is forgotten, so that a run of many days needs no more than a list. */
  update(items: readonly string[]): void {
    const named = new Set(items);
    for (const set of [this.#waiting, this.#busy, this.#skipped, this.#finished]) {
      for (const item of set) if (!named.has(item)) set.delete(item);
    }
    this.#busy.clear();
    this.#endedSince.clear();
    this.#retried.clear();
    this.#skipped.clear();
    for (const item of items) if (!this.#running.has(item) && !this.#finished.has(item)) this.#waiting.add(item);
  }

  /** Another list is begun: what was not claimed from the one before is not claimed any more. */
  clearWaiting(): void {
    this.#waiting.clear();
    this.#retried.clear();
  }

  /** The next `count` to try. */
  next(count: number): string[] {
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

  isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  /** It is waiting once more. */
  wasBusy(item: string): boolean {
    return this.#retried.has(item);
  }

  /** They are tried after all others. */
  defer(items: Iterable<string>): void {
    for (const item of items) if (this.#waiting.delete(item)) this.#waiting.add(item);
  }

  /** Somebody else has it. */
  markBusy(item: string): void {
    if (this.#waiting.delete(item)) this.#busy.add(item);
  }

  /** Somebody else had it when the list was begun, or has had it since. */
  markEndedSince(item: string): void {
    if (this.#waiting.delete(item)) this.#endedSince.add(item);
  }

  /** Whether a list that is begun now may name some that this one says nothing of. */
  isStale(): boolean {
    return this.#endedSince.size > 0;
  }

  /** It has ended well not long ago. */
  markSkipped(item: string): void {
    if (this.#waiting.delete(item)) this.#skipped.add(item);
  }

  markClaimed(item: string): void {
    this.#waiting.delete(item);
    this.#running.add(item);
  }

  /** It was claimed and not begun: it is the next again. */
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

  /** Those that were busy are tried once more, after the others. */
  retryBusy(): void {
    for (const item of this.#busy) {
      this.#waiting.add(item);
      this.#retried.add(item);
    }
    this.#busy.clear();
  }

  counts(): PoolCounts {
    return {
      ...this.#counts,
      busy: this.#busy.size + this.#endedSince.size,
      skipped: this.#skipped.size,
      remaining: this.#waiting.size,
    };
  }
}
