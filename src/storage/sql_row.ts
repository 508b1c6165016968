/** What SQLite gives and takes: numbers, texts, bytes, or nothing; a row by the names of its columns. */
import type { StatementSync } from "node:sqlite";

export type SqlValue = number | string | Uint8Array | null;
export type SqlRow = Record<string, SqlValue>;

/**
 * What `read` gives: a row, rows, or undefined. No row was stored with an integer that a JavaScript number cannot represent; where a
 * disk has made one of it, the row has the nearest number in its place, so that its checksum tells, and the other rows are read.
 */
export function withNearestNumbers<Read>(statement: StatementSync, read: (statement: StatementSync) => unknown): Read {
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
