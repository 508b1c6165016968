/**
 * Tables whose rows have a checksum over all columns, so that baton detects a row that a disk error has changed. SQLite
 * itself checks only the structure of its pages and its log. Pure.
 */
import { crc32 } from "../support/digest.ts";
import type { SqlRow, SqlValue } from "./sql_row.ts";

export interface ChecksumTable<Column extends string> {
  readonly name: string;
  /** All columns except `sum`, in the order in which the checksum covers them. */
  readonly columns: readonly Column[];
  /** All columns including `sum`, for a SELECT. Checking a row needs all of them. */
  readonly allColumns: string;
  readonly insert: string;
  readonly replace: string;
  /** Returns the values that `insert` and `replace` bind. Ignores columns that are not in the table. */
  valuesToBind(row: Readonly<Record<Column, SqlValue>>): SqlValue[];
  /** Returns the checksum of a row with these values. */
  checksumOfRow(row: Readonly<Record<Column, SqlValue>>): number;
  /** Returns true if a row has the values with which it was stored. */
  isIntact(row: SqlRow): boolean;
}

export function defineChecksumTable<const Column extends string>(
  name: string,
  columns: readonly Column[],
): ChecksumTable<Column> {
  const allColumns = [...columns, "sum"].join(", ");
  const into = `INTO ${name} (${allColumns}) VALUES (${[...columns, "sum"].map(() => "?").join(", ")})`;
  const valuesOf = (row: Readonly<Record<Column, SqlValue>>) => columns.map((column) => row[column]);
  const sumOf = (row: Readonly<Record<Column, SqlValue>>) => computeChecksumOfValues(valuesOf(row));
  return {
    name,
    columns,
    allColumns,
    insert: `INSERT ${into}`,
    replace: `INSERT OR REPLACE ${into}`,
    checksumOfRow: sumOf,
    valuesToBind: (row) => {
      const values = valuesOf(row);
      const isEmpty = (value: SqlValue) => value instanceof Uint8Array && value.byteLength === 0;
      return [...values.map((value) => isEmpty(value) ? emptyBytes : value), computeChecksumOfValues(values)];
    },
    isIntact: (row) => row["sum"] === sumOf(row as Record<Column, SqlValue>),
  };
}

/** Stands for empty bytes, because Node.js 22 stores a new Uint8Array(0) as NULL. */
const emptyBytes = new Uint8Array(new ArrayBuffer(1), 0, 0);

const kinds = { nothing: 0, number: 1, text: 2, bytes: 3 } as const;
const encoder = new TextEncoder();
/**
 * A buffer that collects numbers and short texts, because one checksum over many values is faster than many small
 * checksums.
 */
const gathered = new Uint8Array(2048);
const view = new DataView(gathered.buffer);
const shortTextMax = 256;

/**
 * Returns the CRC-32 of the values. It includes their types and lengths, so that bytes that moved from one value to
 * another are detected.
 */
export function computeChecksumOfValues(values: readonly SqlValue[]): number {
  let sum = 0, at = 0;
  const flush = () => {
    sum = crc32(gathered.subarray(0, at), sum);
    at = 0;
  };
  for (const value of values) {
    if (at + 3 * shortTextMax + 16 > gathered.byteLength) flush();
    if (value === null || value === undefined) gathered[at++] = kinds.nothing;
    else if (typeof value === "number") {
      gathered[at] = kinds.number;
      view.setFloat64(at + 1, value);
      at += 9;
    } else if (typeof value === "string" && value.length <= shortTextMax) {
      const { written } = encoder.encodeInto(value, gathered.subarray(at + 5));
      gathered[at] = kinds.text;
      view.setUint32(at + 1, written);
      at += 5 + written;
    } else {
      const bytes = typeof value === "string" ? encoder.encode(value) : value;
      gathered[at] = typeof value === "string" ? kinds.text : kinds.bytes;
      view.setUint32(at + 1, bytes.byteLength);
      at += 5;
      flush();
      sum = crc32(bytes, sum);
    }
  }
  flush();
  return sum;
}

/**
 * Returns true if an error means damaged data: SQLite found damaged pages, or a number that baton never stores. Other
 * errors, of the disk or of a lock, prove no damage.
 */
export function isSqliteDamageError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return (error as NodeJS.ErrnoException).code === "ERR_OUT_OF_RANGE" ||
    /malformed|corrupt|too large to be represented/i.test(error.message);
}
