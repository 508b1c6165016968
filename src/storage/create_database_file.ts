/** An SQLite database's file that is never there without content, so that an empty one is known for what was cut off. */
import { closeSync, existsSync, linkSync, openSync, renameSync, rmSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { flushPath } from "./durable_file.ts";

/**
 * Makes one without tables, in WAL mode, with `pragmas` set, under another name first: whoever is killed meanwhile leaves that.
 * Lets be what somebody else has made at the same time. Its name is the caller's to flush. Throws the system's error, SQLite's.
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
      // There already; or a file system without links, where who has opened another one meanwhile finds it replaced.
      if (!existsSync(path)) {
        if ((thrown as NodeJS.ErrnoException).code === "ENOENT") throw thrown;
        renameSync(making, path);
      }
    }
  } finally {
    for (const end of ["", "-journal", "-wal", "-shm"]) rmSync(making + end, { force: true });
  }
}
