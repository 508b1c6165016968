import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { createDatabaseFile } from "../../../../src/base/storage/create_database_file.ts";

let folder: string;
beforeEach(() => folder = mkdtempSync(join(tmpdir(), "baton-database-")));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("a database's file has content as soon as it has its name, is its user's alone, and nothing else is left", () => {
  const path = join(folder, "a.sqlite");
  createDatabaseFile(path, "PRAGMA auto_vacuum = INCREMENTAL");
  expect(readdirSync(folder)).toEqual(["a.sqlite"]);
  expect([statSync(path).size, statSync(path).mode & 0o777]).toEqual([4096, 0o600]);
  using database = new DatabaseSync(path);
  expect(database.prepare("PRAGMA journal_mode").get()).toEqual({ journal_mode: "wal" });
  expect(database.prepare("PRAGMA auto_vacuum").get()).toEqual({ auto_vacuum: 2 });
});

test("what somebody else has made at the same time is let be", () => {
  const path = join(folder, "a.sqlite");
  createDatabaseFile(path);
  const { ino } = statSync(path);
  createDatabaseFile(path);
  expect([statSync(path).ino, readdirSync(folder)]).toEqual([ino, ["a.sqlite"]]);
});

test("a folder that is not there is told", () => {
  expect(() => createDatabaseFile(join(folder, "none/a.sqlite"))).toThrow(/ENOENT/);
});
