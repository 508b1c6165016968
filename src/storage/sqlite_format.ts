/** Whose SQLite database a file is, and in which form: PRAGMA application_id and user_version. */
import type { DatabaseSync } from "node:sqlite";
import { BatonError } from "../errors.ts";

export interface SqliteFormat {
  /** As messages call it: "topic store". */
  readonly what: string;
  readonly folder: string;
  readonly path: string;
  readonly applicationId: number;
  readonly format: number;
}

/** Throws CONFIG for another program's database, and for a form that this version does not know. A new file is in order. */
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
  const age = format > wanted.format ? "a newer one" : "one before the first release";
  throw new BatonError(
    "CONFIG",
    `The ${what} in ${folder} has format ${format}; this version of baton knows ${wanted.format}: ${age} wrote it`,
  );
}
