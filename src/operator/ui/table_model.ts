/**
 * The rows of all tables as they were sent last, and the rows that changed since. A page gets the whole tables first,
 * then patches with the changed rows only. Owns no connection and no clock.
 */
import type { UiTableName, UiTables } from "./ui_rows.ts";

export const uiTableNames = [
  ...["locks", "elections", "barriers", "pools", "ticks", "topics", "servers", "stores", "processes", "about"] as const,
] satisfies UiTableName[];

/** The maximum number of rows in a table; further ones are refused, and the reader of the rows reports that. */
export const tableRowsMax = 10_000;
/** Number of patches that are kept for pages that come back. */
export const tablePatchesKeptMax = 256;
/** Total size of the kept patches, in characters. */
const patchCharactersMax = 4 << 20;

/** The text of one event for a page, and its number. */
export interface NumberedTablePatch {
  readonly number: number;
  /** JSON: a `UiTablePatch`. */
  readonly text: string;
}

export class UiTableModel {
  /** JSON of each row. */
  readonly #rows = new Map<UiTableName, Map<string, string>>(uiTableNames.map((name) => [name, new Map()]));
  readonly #changed = new Map<UiTableName, Map<string, string | null>>();
  readonly #patches: NumberedTablePatch[] = [];
  #characters = 0;
  #number = 0;

  /** The number of the last patch. */
  get number(): number {
    return this.#number;
  }

  /** Sets one row; null removes it. Returns false if the table is full. */
  set<Name extends UiTableName>(table: Name, key: string, row: UiTables[Name] | null): boolean {
    const rows = this.#rowsOf(table);
    const text = row === null ? null : JSON.stringify(row);
    if ((rows.get(key) ?? null) === text) return true;
    if (text !== null && rows.size >= tableRowsMax && !rows.has(key)) return false;
    if (text === null) rows.delete(key);
    else rows.set(key, text);
    let changed = this.#changed.get(table);
    if (changed === undefined) this.#changed.set(table, changed = new Map());
    changed.set(key, text);
    return true;
  }

  /** Replaces all rows of a table. */
  replace<Name extends UiTableName>(table: Name, rows: ReadonlyMap<string, UiTables[Name]>): void {
    for (const key of [...this.#rowsOf(table).keys()]) if (!rows.has(key)) this.set(table, key, null);
    for (const [key, row] of rows) this.set(table, key, row);
  }

  keys(table: UiTableName): readonly string[] {
    return [...this.#rowsOf(table).keys()];
  }

  row<Name extends UiTableName>(table: Name, key: string): UiTables[Name] | null {
    const text = this.#rowsOf(table).get(key);
    return text === undefined ? null : JSON.parse(text) as UiTables[Name];
  }

  /** The rows that changed since the last call, as a new patch; null: none has. */
  takePatch(): NumberedTablePatch | null {
    if (this.#changed.size === 0) return null;
    const patch = { number: ++this.#number, text: jsonOf(this.#changed) };
    this.#changed.clear();
    this.#patches.push(patch);
    this.#characters += patch.text.length;
    while (this.#patches.length > tablePatchesKeptMax || this.#characters > patchCharactersMax) {
      this.#characters -= this.#patches.shift()?.text.length ?? 0;
    }
    return patch;
  }

  /** All rows as they are in the last patch. Rows that changed later are in it with their newest values. */
  snapshot(): NumberedTablePatch {
    return { number: this.#number, text: jsonOf(this.#rows) };
  }

  /** The patches after this number; null if some are no longer kept, or the number is not of this model. */
  patchesAfter(number: number): readonly NumberedTablePatch[] | null {
    if (number === this.#number) return [];
    const first = this.#patches[0]?.number ?? Infinity;
    if (!Number.isSafeInteger(number) || number > this.#number || number < first - 1) return null;
    return this.#patches.filter((patch) => patch.number > number);
  }

  #rowsOf(table: UiTableName): Map<string, string> {
    const rows = this.#rows.get(table);
    if (rows === undefined) throw new Error(`There is no table "${table}"`);
    return rows;
  }
}

/** The rows are JSON already, and are not parsed for this. */
function jsonOf(tables: ReadonlyMap<UiTableName, ReadonlyMap<string, string | null>>): string {
  const parts = [...tables].map(([name, rows]) => {
    const fields = [...rows].map(([key, text]) => `${JSON.stringify(key)}:${text ?? "null"}`);
    return `${JSON.stringify(name)}:{${fields.join(",")}}`;
  });
  return `{${parts.join(",")}}`;
}
