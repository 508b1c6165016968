/** The counters of one publisher's session that are resolved, and the bound below which they are forgotten. No storage, no clock. */
import type { ResolvedCounter } from "../../wire/pubsub/topic_transfer_data.ts";
import { plainWindowCounters } from "./topic_store_limits.ts";

/** A stored row of resolved counters. */
interface WindowRow {
  readonly id: number;
  readonly entries: readonly ResolvedCounter[];
  readonly highest: number;
}

export class PublisherWindow {
  /** 0: a plain client's, whose bound follows its newest counter. */
  readonly session: number;
  readonly key: string;
  readonly #resolved = new Map<number, ResolvedCounter>();
  readonly #rows: WindowRow[] = [];
  #firstUnacked: number;
  #highest = -1;

  constructor(session: number, key: string, firstUnacked: number) {
    this.session = session;
    this.key = key;
    this.#firstUnacked = firstUnacked;
  }

  /** Counters below it are not known any more. */
  get firstUnacked(): number {
    return this.#firstUnacked;
  }

  get size(): number {
    return this.#resolved.size;
  }

  get(counter: number): ResolvedCounter | undefined {
    return this.#resolved.get(counter);
  }

  /** All that are at or above the bound, ascending. */
  entries(): ResolvedCounter[] {
    return [...this.#resolved.values()].filter(({ counter }) => counter >= this.#firstUnacked).sort((a, b) =>
      a.counter - b.counter
    );
  }

  /** The bound that a request with this `firstUnacked` and highest counter brings with it; it never sinks. */
  boundFor(firstUnacked: number, highest: number): number {
    const asked = this.session === 0 ? Math.max(highest, this.#highest) - plainWindowCounters + 1 : firstUnacked;
    return Math.max(this.#firstUnacked, asked);
  }

  raise(bound: number): void {
    this.#firstUnacked = Math.max(this.#firstUnacked, bound);
  }

  add(entry: ResolvedCounter): void {
    this.#resolved.set(entry.counter, entry);
    if (entry.counter > this.#highest) this.#highest = entry.counter;
  }

  /** The entries are in the stored row `id`. */
  addRow(id: number, entries: readonly ResolvedCounter[]): void {
    let highest = -1;
    for (const { counter } of entries) highest = Math.max(highest, counter);
    this.#rows.push({ id, entries, highest });
  }

  /**
   * When `rows` stored rows in a row, from the oldest on, have nothing at or above the bound: forgets them here, and gives
   * the number of the last, up to which they are to be deleted; null before that.
   */
  forgetRows(rows: number): number | null {
    for (let index = 0; index < rows; index++) {
      const row = this.#rows[index];
      // Rows follow each other nearly by counter: one that is out of order waits for those before it.
      if (row === undefined || row.highest >= this.#firstUnacked) return null;
    }
    const gone = this.#rows.splice(0, rows);
    for (const { entries } of gone) for (const { counter } of entries) this.#resolved.delete(counter);
    return gone.at(-1)?.id ?? null;
  }
}
