import { afterEach, beforeEach, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { copySqliteDatabase, SqliteFile, type SqliteFileOptions } from "../../../../src/base/storage/sqlite_file.ts";
import { noProgress } from "../../../../src/base/support/work_progress.ts";

let folder: string;
beforeEach(() => folder = mkdtempSync(join(tmpdir(), "baton-sqlite-file-")));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const schema = `CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY);
  CREATE TABLE IF NOT EXISTS owner (id INTEGER PRIMARY KEY, name TEXT NOT NULL);`;

const owner = {
  column: "name",
  busy: () => new Error("another process owns it"),
  takenOver: () => new Error("another process has opened it"),
};

function open(options: Partial<SqliteFileOptions> = {}): SqliteFile {
  const path = join(folder, "rows.sqlite");
  const format = { what: "row store", folder, path, applicationId: 7, format: 3, schema };
  return new SqliteFile({ format, busyMs: 0, pragmas: "", prepare: () => {}, ...options });
}

const ids = (file: SqliteFile) => file.all("SELECT id FROM rows ORDER BY id").map(({ id }) => id);
const add = (file: SqliteFile, id: number) => file.transaction(() => file.run("INSERT INTO rows VALUES (?)", id));

test("a transaction that throws stores nothing, and the first rows are added once", () => {
  let firsts = 0;
  const options = { addFirstRows: () => void firsts++ };
  for (const expected of [[1], [1, 2]]) {
    using file = open(options);
    add(file, expected.length);
    expect(() =>
      file.transaction(() => {
        file.run("INSERT INTO rows VALUES (9)");
        throw new Error("not this");
      })
    ).toThrow("not this");
    expect(ids(file)).toEqual(expected);
  }
  expect(firsts).toBe(1);
});

test("a folder has one owner; where its lock was removed, the last that opens the file is the one that writes", () => {
  const first = open({ owner });
  add(first, 1);
  expect(() => open({ owner })).toThrow("another process owns it");
  rmSync(join(folder, "owner.sqlite"));
  const last = open({ owner });
  expect(() => add(first, 2)).toThrow("another process has opened it");
  add(last, 3);
  expect(ids(last)).toEqual([1, 3]);
  for (const file of [first, last]) file.close();
  open({ owner }).close();
});

test("a file that cannot be opened is owned by no process, and another program's file stays as it is", () => {
  const path = join(folder, "rows.sqlite");
  const other = new DatabaseSync(path);
  other.exec("PRAGMA application_id = 8; CREATE TABLE own (id)");
  const openError = (error: unknown) => new Error(`not opened: ${(error as Error).message}`);
  for (const _ of [1, 2]) expect(() => open({ owner, openError })).toThrow("not opened: ");
  expect(other.prepare("PRAGMA journal_mode").get()).toEqual({ journal_mode: "delete" });
  other.close();
});

test("what is written into a file that was removed or replaced is refused", () => {
  using file = open({ checksFiles: true });
  add(file, 1);
  renameSync(join(folder, "rows.sqlite"), join(folder, "moved.sqlite"));
  file.invalidateFileCheck();
  expect(() => add(file, 2)).toThrow("rows.sqlite was removed or replaced while it was in use");
});

test("a copy has its name when it is complete and checked; after an error there is none", () => {
  using file = open();
  add(file, 1);
  const path = join(folder, "copy.sqlite");
  const read = (copy: (database: DatabaseSync) => void) => copy(file.database);
  const check = (copy: DatabaseSync) => {
    expect(existsSync(path)).toBe(false);
    expect(copy.prepare("SELECT id FROM rows").all()).toEqual([{ id: 1 }]);
  };
  const fail = () => {
    throw new Error("damaged");
  };
  expect(() => copySqliteDatabase(read, path, { check: fail, progress: noProgress })).toThrow("damaged");
  expect(readdirSync(folder).filter((name) => name.startsWith("copy"))).toEqual([]);
  copySqliteDatabase(read, path, { check, progress: noProgress });
  expect(readdirSync(folder).filter((name) => name.startsWith("copy"))).toEqual(["copy.sqlite"]);
});
