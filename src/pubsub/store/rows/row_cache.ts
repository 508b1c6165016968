/** The cache of recently read and written log rows, for all topics of a store. */
import type { LogRow } from "./topic_rows.ts";

/**
 * The memory that a row needs in addition to its records, for objects and the cache entry, in bytes. If the cache did
 * not count this memory, small rows would take six times the limit.
 */
const bytesPerRow = 512;

/**
 * A cache of rows. When it is full, drops the rows that were not used for the longest time. `Key` identifies a row in
 * the whole store.
 */
export class LogRowCache<Key, Row extends Pick<LogRow, "records"> = LogRow> {
  readonly #bytesMax: number;
  readonly #rows = new Map<Key, Row>();
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  get(key: Key): Row | undefined {
    const row = this.#rows.get(key);
    if (row === undefined) return undefined;
    this.#rows.delete(key);
    this.#rows.set(key, row);
    return row;
  }

  set(key: Key, row: Row): void {
    this.delete(key);
    this.#rows.set(key, row);
    this.#bytes += row.records.byteLength + bytesPerRow;
    for (const [oldKey, old] of this.#rows) {
      if (this.#bytes <= this.#bytesMax || old === row) return;
      this.delete(oldKey);
    }
  }

  delete(key: Key): void {
    const row = this.#rows.get(key);
    if (row === undefined) return;
    this.#rows.delete(key);
    this.#bytes -= row.records.byteLength + bytesPerRow;
  }
}
