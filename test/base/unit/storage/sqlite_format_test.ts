import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { checkSqliteFormat } from "../../../../src/base/storage/sqlite_format.ts";

const folder = mkdtempSync(join(tmpdir(), "baton-format-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const schema = "CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY);";
const wanted = { what: "row store", folder, path: join(folder, "rows"), applicationId: 7, format: 3, schema };
const create = (format = 3) => `BEGIN; ${schema} PRAGMA user_version = ${format}; PRAGMA application_id = 7; COMMIT`;

function databaseWith(sql: string): DatabaseSync {
  const database = new DatabaseSync(":memory:");
  database.exec(sql);
  return database;
}

test("a new file and a file of this format pass; others are refused", () => {
  checkSqliteFormat(databaseWith(""), wanted);
  checkSqliteFormat(databaseWith(create()), wanted);
  const refused = (sql: string) => () => checkSqliteFormat(databaseWith(sql), wanted);
  expect(refused("PRAGMA application_id = 8")).toThrow("is another program's database, not a row store");
  expect(refused(create(4))).toThrow("a newer version (format 4)");
  expect(refused(create(2))).toThrow("a version before the first release (format 2)");
  expect(refused(`${create()}; CREATE INDEX more ON rows (id)`)).toThrow("its schema is damaged");
});

test("a store passes that another process creates during the check", () => {
  const path = join(folder, "raced");
  using database = new DatabaseSync(path);
  using other = new DatabaseSync(path);
  const prepare = database.prepare.bind(database);
  database.prepare = (sql) => {
    if (sql.includes("application_id")) other.exec(create());
    return prepare(sql);
  };
  checkSqliteFormat(database, wanted);
  expect(database.prepare("PRAGMA user_version").get()).toEqual({ user_version: 3 });
});
