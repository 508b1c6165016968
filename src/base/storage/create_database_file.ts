/** Creates SQLite database files that are never empty, so that an empty file is known to be damaged. */
import { closeSync, existsSync, linkSync, openSync, renameSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { flushPath } from "./durable_file.ts";

/**
 * Creates a database without tables, in WAL mode, with these pragmas. Builds the database under a temporary name; a
 * process that is killed leaves the temporary file behind. If another process has created the database in the meantime,
 * keeps that file. The caller flushes the folder. Throws errors of the system and of SQLite.
 */
export function createDatabaseFile(path: string, pragmas = ""): void {
  const making = `${path}.new-${crypto.randomUUID()}`;
  try {
    closeSync(openSync(making, "wx", 0o600));
    const database = new DatabaseSync(making);
    try {
      database.exec(`${pragmas}; PRAGMA journal_mode = WAL`);
    } finally {
      database.close();
    }
    flushPath(making);
    try {
      linkSync(making, path);
    } catch (thrown) {
      // Either the file exists now, or the file system has no links. If it has no links, renaming may replace a file
      // that another process has just created; that process detects the replacement.
      if (!existsSync(path)) {
        if ((thrown as NodeJS.ErrnoException).code === "ENOENT") throw thrown;
        renameSync(making, path);
      }
    }
  } finally {
    for (const end of ["", "-journal", "-wal", "-shm"]) rmSync(making + end, { force: true });
  }
}
