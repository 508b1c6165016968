/**
 * A table whose rows have a checksum over all of their columns: what SQLite gives back as it was not stored, because a disk has
 * changed a bit, is recognized. SQLite itself checks its pages' structure only, and its log. Pure; owns no database.
 */
import { crc32 } from "node:zlib";
import type { SqlRow, SqlValue } from "./sql_row.ts";

export interface ChecksumTable<Column extends string> {
  readonly name: string;
  /** All but `sum`, in the order in which the checksum takes them. */
  readonly columns: readonly Column[];
  /** The columns of a row with its checksum, for a SELECT: what is left out cannot be checked. */
  readonly allColumns: string;
  readonly insert: string;
  readonly replace: string;
  /** What `insert` and `replace` bind. Values of other columns than these are not looked at. */
  bind(row: Readonly<Record<Column, SqlValue>>): SqlValue[];
  /** The checksum that a row of these values has. */
  sumOf(row: Readonly<Record<Column, SqlValue>>): number;
  /** Whether a row that was read has the values that were stored. */
  isIntact(row: SqlRow): boolean;
}

export function checksumTable<const Column extends string>(
  name: string,
  columns: readonly Column[],
): ChecksumTable<Column> {
  const allColumns = [...columns, "sum"].join(", ");
  const into = `INTO ${name} (${allColumns}) VALUES (${[...columns, "sum"].map(() => "?").join(", ")})`;
  const valuesOf = (row: Readonly<Record<Column, SqlValue>>) => columns.map((column) => row[column]);
  const sumOf = (row: Readonly<Record<Column, SqlValue>>) => checksumOf(valuesOf(row));
  return {
    name,
    columns,
    allColumns,
    insert: `INSERT ${into}`,
    replace: `INSERT OR REPLACE ${into}`,
    sumOf,
    bind: (row) => {
      const values = valuesOf(row);
      values.push(checksumOf(values));
      return values;
    },
    isIntact: (row) => row["sum"] === sumOf(row as Record<Column, SqlValue>),
  };
}

const kinds = { nothing: 0, number: 1, text: 2, bytes: 3 } as const;
const encoder = new TextEncoder();
/** Numbers and short texts are gathered here: to have many small pieces summed takes longer than one. */
const gathered = new Uint8Array(2048);
const view = new DataView(gathered.buffer);
const shortTextMax = 256;

/** CRC-32 of the values, each with its kind and length, so that what goes from one to the next is seen as well. */
export function checksumOf(values: readonly SqlValue[]): number {
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
 * SQLite found what it read to be damaged, or the row has a number that none was ever stored as. Other failures, of the disk
 * or of a lock, say nothing about a row.
 */
export function isDamage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return (error as NodeJS.ErrnoException).code === "ERR_OUT_OF_RANGE" ||
    /malformed|corrupt|too large to be represented/i.test(error.message);
}
