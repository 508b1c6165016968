/** The window of a publisher's session: the known counters, and the bound below which counters are forgotten. Pure. */
import type { ResolvedPutCounter } from "../../wire/topic_records.ts";
import { plainClientCountersMax } from "../limits/topic_store_limits.ts";

interface WindowRow {
  readonly id: number;
  readonly entries: readonly ResolvedPutCounter[];
  readonly highest: number;
}

export class PublisherWindow {
  /** The number of the session; 0 for a client without sessions, whose bound follows the newest counter. */
  readonly session: number;
  readonly key: string;
  readonly #resolved = new Map<number, ResolvedPutCounter>();
  readonly #rows: WindowRow[] = [];
  #firstUnacked: number;
  #highest = -1;

  constructor(session: number, key: string, firstUnacked: number) {
    this.session = session;
    this.key = key;
    this.#firstUnacked = firstUnacked;
  }

  get firstUnacked(): number {
    return this.#firstUnacked;
  }

  /** The highest known counter; -1 if none is known. */
  get highest(): number {
    return this.#highest;
  }

  get size(): number {
    return this.#resolved.size;
  }

  get(counter: number): ResolvedPutCounter | undefined {
    return this.#resolved.get(counter);
  }

  /** Returns the known counters at or above the bound, ascending. */
  entries(): ResolvedPutCounter[] {
    return [...this.#resolved.values()].filter(({ counter }) => counter >= this.#firstUnacked).sort((a, b) =>
      a.counter - b.counter
    );
  }

  /** Returns the bound after a put with this `firstUnacked` and highest counter. The bound never decreases. */
  boundFor(firstUnacked: number, highest: number): number {
    const asked = this.session === 0 ? Math.max(highest, this.#highest) - plainClientCountersMax + 1 : firstUnacked;
    return Math.max(this.#firstUnacked, asked);
  }

  raiseBound(bound: number): void {
    this.#firstUnacked = Math.max(this.#firstUnacked, bound);
  }

  add(entry: ResolvedPutCounter): void {
    this.#resolved.set(entry.counter, entry);
    if (entry.counter > this.#highest) this.#highest = entry.counter;
  }

  /** Records that the entries are in the stored row `id`. */
  addRow(id: number, entries: readonly ResolvedPutCounter[]): void {
    let highest = -1;
    for (const { counter } of entries) highest = Math.max(highest, counter);
    this.#rows.push({ id, entries, highest });
  }

  /**
   * Forgets the oldest `rows` stored rows if all their counters are below the bound. Returns the ID of the last of
   * these rows; the store can delete rows up to this ID. Returns null if it forgets nothing.
   */
  forgetRows(rows: number): number | null {
    for (let index = 0; index < rows; index++) {
      const row = this.#rows[index];
      // Rows are almost in the order of their counters. A row that is out of order waits for the rows before it.
      if (row === undefined || row.highest >= this.#firstUnacked) return null;
    }
    const gone = this.#rows.splice(0, rows);
    for (const { entries } of gone) for (const { counter } of entries) this.#resolved.delete(counter);
    return gone.at(-1)?.id ?? null;
  }
}
