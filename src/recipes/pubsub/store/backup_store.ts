/** A copy of a topic store that may be in use: one moment of it, whole, while commits go on beside. */
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { BatonError } from "../../../errors.ts";
import { flushPath } from "../../../support/flush_path.ts";
import { databaseName, openToRead, storeError } from "./topic_database.ts";

/**
 * Copies the store in `dataDir` into the folder `target`, which then is a data directory. Takes as long as reading and writing
 * it does: call it in a process or a thread of its own. Throws CONFIG where there is no store, CANNOT_CREATE when
 * the target is there already, IO otherwise.
 */
export function backupStore(dataDir: string, target: string): void {
  const path = join(target, databaseName);
  if (existsSync(path)) {
    throw new BatonError("CANNOT_CREATE", `Cannot back up ${dataDir} to ${target}: ${path} is there already`);
  }
  const database = openToRead(dataDir);
  try {
    mkdirSync(target, { recursive: true, mode: 0o700 });
    database.exec("PRAGMA query_only = OFF"); // it would keep the copy from being written
    database.prepare("VACUUM INTO ?").run(path);
    for (const name of [path, target]) flushPath(name);
  } catch (error) {
    throw storeError(error, dataDir);
  } finally {
    database.close();
  }
}
