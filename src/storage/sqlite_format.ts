/** Checks the owner and the format of an SQLite database: PRAGMA application_id and user_version. */
import type { DatabaseSync } from "node:sqlite";
import { BatonError } from "../errors.ts";

export interface SqliteFormat {
  /** The name in messages: "topic store". */
  readonly what: string;
  readonly folder: string;
  readonly path: string;
  readonly applicationId: number;
  readonly format: number;
}

/** Throws CONFIG for another program's database, and for an unknown format. A new file passes. */
export function checkSqliteFormat(database: DatabaseSync, wanted: SqliteFormat): void {
  const pragma = (name: string) => Number(database.prepare(`PRAGMA ${name}`).get()?.[name] ?? 0);
  const format = pragma("user_version");
  const application = pragma("application_id");
  if (format === 0 && application === 0) return;
  const { what, folder, path } = wanted;
  if (application !== wanted.applicationId) {
    throw new BatonError("CONFIG", `${path} is another program's database, not a ${what}`);
  }
  if (format === wanted.format) return;
  const age = format > wanted.format ? "a newer version" : "a version before the first release";
  throw new BatonError(
    "CONFIG",
    `The ${what} in ${folder} was written by ${age} (format ${format}); this version of baton reads format ${wanted.format}`,
  );
}
