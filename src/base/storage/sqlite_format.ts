/** Checks that an SQLite database belongs to this program, and checks its format and its tables. */
import { DatabaseSync } from "node:sqlite";
import { BatonError } from "../errors.ts";

export interface SqliteFormat {
  /** The name of the store in messages, such as "topic store". */
  readonly what: string;
  readonly folder: string;
  readonly path: string;
  readonly applicationId: number;
  readonly format: number;
  /** The statements that create all tables and indexes. */
  readonly schema: string;
}

/**
 * Throws CONFIG for another program's database or an unknown format, and Error for a damaged schema. Accepts a new,
 * empty file.
 */
export function checkSqliteFormat(database: DatabaseSync, wanted: SqliteFormat): void {
  const before = readSqlitePragma(database, "user_version");
  const application = readSqlitePragma(database, "application_id");
  if (before === 0 && application === 0) return;
  // Another process may have created the tables between the two reads.
  const format = before === 0 ? readSqlitePragma(database, "user_version") : before;
  const { what, folder, path } = wanted;
  if (application !== wanted.applicationId) {
    throw new BatonError("CONFIG", `${path} is another program's database, not a ${what}`);
  }
  if (format === wanted.format) return checkSqliteSchema(database, wanted.schema);
  const isNewer = format > wanted.format;
  const age = isNewer ? "a newer version" : "a version before the first release";
  const remedy = isNewer ? "use the newer version" : "start with a new folder";
  throw new BatonError(
    "CONFIG",
    `The ${what} in ${folder} was written by ${age} (format ${format}); ` +
      `this version of baton reads format ${wanted.format}: ${remedy}`,
  );
}

/**
 * Throws if a table or an index is not as `schema` creates it. SQLite itself would use a damaged definition. If the
 * name of a table is damaged, SQLite would create an empty table beside it.
 */
export function checkSqliteSchema(database: DatabaseSync, schema: string): void {
  using fresh = new DatabaseSync(":memory:");
  fresh.exec(schema);
  if (schemaOf(fresh) !== schemaOf(database)) {
    throw new Error("its schema is damaged: a table or an index is not as it was created");
  }
}

/** Returns the value of a numeric PRAGMA, such as `user_version`. */
export function readSqlitePragma(database: DatabaseSync, name: string): number {
  return Number(database.prepare(`PRAGMA ${name}`).get()?.[name] ?? 0);
}

function schemaOf(database: DatabaseSync): string {
  const sql = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name";
  return JSON.stringify(database.prepare(sql).all());
}
