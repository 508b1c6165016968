/**
 * Records damaged and missing rows that a store has found. A request that needs such a row fails. Each damage is
 * reported and counted only once.
 */
import type { SqlRow } from "./sql_row.ts";
import { type ChecksumTable, isSqliteDamageError } from "./checksum_table.ts";

/** The most damaged rows that are reported and counted. */
const reportedMax = 10_000;

/** The message is a clause for use in a sentence: `row 17 of the messages of topic "news" is damaged`. */
export class DamageError extends Error {}

/**
 * Returns the result of `read`. If `read` throws an error that `isExpected` accepts (by default a DamageError), returns
 * `otherwise`.
 */
export function readOrIfDamaged<T, Other>(
  otherwise: Other,
  read: () => T,
  isExpected: (error: unknown) => boolean = (error) => error instanceof DamageError,
): T | Other {
  try {
    return read();
  } catch (error) {
    if (isExpected(error)) return otherwise;
    throw error;
  }
}

export class StoreDamageLog {
  readonly #known = new Set<string>();
  onFound: (sentence: string) => void = () => {};

  get count(): number {
    return this.#known.size;
  }

  /** Records damage, and returns an error that the caller may throw. */
  reportDamage(sentence: string): DamageError {
    if (!this.#known.has(sentence) && this.#known.size < reportedMax) {
      this.#known.add(sentence);
      this.onFound(sentence);
    }
    return new DamageError(sentence);
  }

  /**
   * Returns the row if it is intact; otherwise throws DamageError. `where` is a text for the message, such as "of topic
   * news".
   */
  requireIntactRow<Row extends SqlRow>(table: ChecksumTable<string>, row: Row, where: string): Row {
    if (table.isIntact(row)) return row;
    throw this.reportDamage(describeDamagedRow(table.name, row["id"], where));
  }

  /**
   * Returns the result of `read`. Throws DamageError if SQLite finds damaged pages, or a number that baton never
   * stores.
   */
  detectDamage<T>(what: string, read: () => T): T {
    try {
      return read();
    } catch (error) {
      if (error instanceof DamageError || !isSqliteDamageError(error)) throw error;
      throw this.reportDamage(`${what} cannot be read: ${(error as Error).message}`);
    }
  }
}

export function describeDamagedRow(table: string, id: unknown, where: string): string {
  return `${id === undefined ? "a row" : `row ${id}`} of the ${table} ${where} is damaged`;
}

/** Returns the name of one or several messages for an error, such as a range of IDs. */
export function formatMessageRange(first: number, last: number): string {
  return first === last ? `message ${first}` : `messages ${first} to ${last}`;
}
