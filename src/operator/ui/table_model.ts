/**
 * Keeps the rows of all tables, and remembers which rows have changed since the last patch. A page first gets all rows,
 * then patches with only the changed rows. Owns no connection and no clock.
 */
import type { UiTableName, UiTables } from "./ui_rows.ts";

export const uiTableNames = [
  ...["locks", "elections", "barriers", "pools", "ticks", "topics", "servers", "stores", "processes"] as const,
  ...["findings", "about"] as const,
] satisfies UiTableName[];

/** Maximum number of rows of a table. `set` rejects further rows, and its caller reports that. */
export const tableRowsMax = 10_000;
/** How many patches are kept for pages that reconnect. */
export const tablePatchesKeptMax = 256;
/** Maximum number of characters of all kept patches together. */
const patchCharactersMax = 4 << 20;

/** Rows as text for a page, with the number of the newest patch in them. */
export interface NumberedTablePatch {
  readonly number: number;
  readonly text: string;
}

export class UiTableModel {
  /** Each row as JSON, by table and key. */
  readonly #rows = new Map<UiTableName, Map<string, string>>(uiTableNames.map((name) => [name, new Map()]));
  readonly #changed = new Map<UiTableName, Map<string, string | null>>();
  readonly #patches: NumberedTablePatch[] = [];
  #characters = 0;
  #number = 0;

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

  /** Returns the rows that changed since the last call as a new patch, or null if none changed. */
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

  /**
   * Returns all rows, with the number of the last patch. Rows that changed after that patch have their newest values.
   */
  snapshot(): NumberedTablePatch {
    return { number: this.#number, text: jsonOf(this.#rows) };
  }

  /** Returns the patches after this number, or null if some are no longer kept or the number is unknown. */
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

/** Joins rows, which are JSON texts already, into one JSON object. */
function jsonOf(tables: ReadonlyMap<UiTableName, ReadonlyMap<string, string | null>>): string {
  const parts = [...tables].map(([name, rows]) => {
    const fields = [...rows].map(([key, text]) => `${JSON.stringify(key)}:${text ?? "null"}`);
    return `${JSON.stringify(name)}:{${fields.join(",")}}`;
  });
  return `{${parts.join(",")}}`;
}
