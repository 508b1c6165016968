/** A copy of a topic store that may be in use: one moment of it, whole, while commits go on beside. */
import { closeSync, existsSync, mkdirSync, openSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { BatonError, messageOf } from "../../../errors.ts";
import { flushFolders } from "../../../support/flush_folders.ts";
import { flushPath } from "../../../support/flush_path.ts";
import { databaseName, openToRead, storeError } from "./topic_database.ts";

/**
 * Copies the store in `dataDir` into the folder `target`, which then is a data directory. Takes as long as reading and writing
 * it does: call it in a process or a thread of its own. `mark` is called when all is there, before it counts. Throws CONFIG
 * where there is no store, CANNOT_CREATE when the target is there already, IO otherwise; there is no copy then.
 */
export function backupStore(dataDir: string, target: string, mark: () => void = () => {}): void {
  const path = join(target, databaseName);
  // Under another name until it is whole: whoever is killed meanwhile leaves nothing that could be taken for a store.
  const part = `${path}.part`;
  const database = openToRead(dataDir);
  let ours: string | null = null;
  try {
    mkdirSync(target, { recursive: true, mode: 0o700 });
    if (existsSync(path)) throw alreadyThere(dataDir, target, path);
    closeSync(openSync(part, "wx", 0o600));
    ours = part;
    database.exec("PRAGMA query_only = OFF"); // it would keep the copy from being written
    database.prepare("VACUUM INTO ?").run(part); // which takes an empty file
    flushPath(part);
    mark();
    renameSync(part, path);
    ours = path;
    flushFolders(target);
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (syscall === "mkdir") {
      const why = code === "EEXIST" ? `${target} is there already, and is no folder` : messageOf(error);
      throw new BatonError("CANNOT_CREATE", `Cannot back up ${dataDir} to ${target}: ${why}`, { cause: error });
    }
    if (code === "EEXIST") {
      throw alreadyThere(dataDir, target, `${part}, of a backup that was interrupted or is being made,`);
    }
    if (ours !== null) { for (const name of [ours, `${ours}-journal`]) rmSync(name, { force: true }); }
    throw storeError(error, dataDir);
  } finally {
    database.close();
  }
}

function alreadyThere(dataDir: string, target: string, what: string): BatonError {
  return new BatonError("CANNOT_CREATE", `Cannot back up ${dataDir} to ${target}: ${what} is there already`);
}
