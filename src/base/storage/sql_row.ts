/** Values and rows of SQLite: numbers, texts, bytes, or null; a row maps column names to values. */
import type { StatementSync } from "node:sqlite";

export type SqlValue = number | string | Uint8Array | null;
export type SqlRow = Record<string, SqlValue>;

/** A row of any database. */
export type DatabaseRow = Readonly<Record<string, unknown>>;

/**
 * Returns the result of `read`: a row, rows, or undefined. If a disk error has made an integer too large for a
 * JavaScript number, the result has the nearest number instead. The row's checksum then detects the damage, and other
 * rows stay readable.
 */
export function readWithNearestNumbers<Read>(
  statement: StatementSync,
  read: (statement: StatementSync) => unknown,
): Read {
  try {
    return read(statement) as Read;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_OUT_OF_RANGE") throw error;
  }
  statement.setReadBigInts(true);
  try {
    const found = read(statement);
    if (Array.isArray(found)) return found.map(nearest) as Read;
    return (found === undefined || found === null ? found : nearest(found as Record<string, unknown>)) as Read;
  } finally {
    statement.setReadBigInts(false);
  }
}

function nearest(row: Record<string, unknown>): SqlRow {
  const numbers = Object.entries(row).map(([name, value]) => [name, typeof value === "bigint" ? Number(value) : value]);
  return Object.fromEntries(numbers) as SqlRow;
}
