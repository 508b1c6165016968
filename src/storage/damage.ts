/**
 * What was found damaged in a store: a row that is not as it was stored, or is missing. Whoever finds it throws, and the
 * request that met it is refused; what is told once, and counted, is each row.
 */
import type { SqlRow } from "./sql_row.ts";
import { type ChecksumTable, isDamage } from "./checksum_table.ts";

/** Rows that are told of; the rest is as many. */
const reportedMax = 10_000;

/** A sentence without its end, to stand behind "…, " or before it: `row 17 of the messages of topic "news" is damaged`. */
export class DamageError extends Error {}

export class DamageLog {
  readonly #known = new Set<string>();
  /** Told of each damage once. */
  onFound: (sentence: string) => void = () => {};

  /** Damages that were found since the store was opened. */
  get count(): number {
    return this.#known.size;
  }

  /** To be thrown, or not. */
  found(sentence: string): DamageError {
    if (!this.#known.has(sentence) && this.#known.size < reportedMax) {
      this.#known.add(sentence);
      this.onFound(sentence);
    }
    return new DamageError(sentence);
  }

  /** The row of this table. Throws Damaged when it is not as it was stored. `where`: as in "of topic news". */
  checked<Row extends SqlRow>(table: ChecksumTable<string>, row: Row, where: string): Row {
    if (table.isIntact(row)) return row;
    throw this.found(sentenceOf(table.name, row["id"], where));
  }

  /** What reading gives; Damaged where SQLite finds its pages damaged, or a number that none was stored as. */
  reading<T>(what: string, read: () => T): T {
    try {
      return read();
    } catch (error) {
      if (error instanceof DamageError || !isDamage(error)) throw error;
      throw this.found(`${what} cannot be read: ${(error as Error).message}`);
    }
  }
}

export function sentenceOf(table: string, id: unknown, where: string): string {
  return `${id === undefined ? "a row" : `row ${id}`} of the ${table} ${where} is damaged`;
}

/** Messages that are missing or cannot be read. */
export function rangeOfMessages(first: number, last: number): string {
  return first === last ? `message ${first}` : `messages ${first} to ${last}`;
}
