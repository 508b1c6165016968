/**
 * Copies of a store's files in memory, for tests that change bits in them, and everything that is stored, as values.
 */
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

export class DamagedCopies implements Disposable {
  readonly root = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "baton-damage-"));
  readonly #name: string;
  readonly #tables: readonly string[];

  /** `name`: of the database's file in a store's folder. */
  constructor(name: string, tables: readonly string[]) {
    this.#name = name;
    this.#tables = tables;
  }

  path(folder: string, end = ""): string {
    return join(folder, this.#name + end);
  }

  /** In a folder of this name, in the place of any that is there. */
  copy(folder: string, to: string): string {
    const copy = join(this.root, to);
    rmSync(copy, { recursive: true, force: true });
    mkdirSync(copy, { mode: 0o700 });
    for (const end of ["", "-wal", "-shm"]) {
      if (existsSync(this.path(folder, end))) copyFileSync(this.path(folder, end), this.path(copy, end));
    }
    return copy;
  }

  contents(folder: string): string {
    using database = new DatabaseSync(this.path(folder), { readOnly: true });
    const valueOf = (value: unknown) => value instanceof Uint8Array ? Buffer.from(value).toString("hex") : value;
    return this.#tables.map((table) => {
      const rows = database.prepare(`SELECT * FROM ${table} NOT INDEXED`).all();
      return rows.map((row) => Object.values(row).map(valueOf).join()).sort().join("\n");
    }).join("\n\n");
  }

  [Symbol.dispose](): void {
    rmSync(this.root, { recursive: true, force: true });
  }
}

/** What a verification finds; that it cannot be made is a find as well. */
export function problemsOf(verify: () => { readonly problems: readonly string[] }): readonly string[] {
  try {
    return verify().problems;
  } catch (error) {
    return [String(error)];
  }
}
