/** Creates SQLite database files that are never empty, so that an empty file is known to be truncated. */
import { closeSync, existsSync, linkSync, openSync, renameSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { flushPath } from "./durable_file.ts";

/**
 * Creates a database without tables, in WAL mode, with these pragmas. Uses another name until it is complete; a killed
 * process leaves that file. Keeps a file that another process has created meanwhile. The caller flushes the folder.
 * Throws the errors of the system and of SQLite.
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
      // The file exists, or the file system has no links. In the latter case a process that has opened another file
      // meanwhile detects the replacement.
      if (!existsSync(path)) {
        if ((thrown as NodeJS.ErrnoException).code === "ENOENT") throw thrown;
        renameSync(making, path);
      }
    }
  } finally {
    for (const end of ["", "-journal", "-wal", "-shm"]) rmSync(making + end, { force: true });
  }
}
