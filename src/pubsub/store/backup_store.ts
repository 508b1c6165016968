/** Backup of a topic store, also while a server uses it: a consistent snapshot, taken while commits continue. */
import { closeSync, existsSync, mkdirSync, openSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { BatonError, messageOf } from "../../errors.ts";
import { countWithNoun } from "../../support/text.ts";
import { noProgress, type WorkProgress } from "../../support/work_progress.ts";
import { flushParentFolders, flushPath } from "../../storage/durable_file.ts";
import { usedBytes } from "../../storage/sqlite_format.ts";
import { damageInLog } from "../../storage/wal_check.ts";
import { databaseName, openToRead, storeError } from "./topic_database.ts";
import { verifyRows } from "./verify_topic_store.ts";

/**
 * Copies the store in `dataDir` into the folder `target`, which becomes a data directory. Takes as long as reading and
 * writing all data: call it in a process or thread of its own. `mark` is called when the copy is complete, before it
 * gets its final name.
 * Throws CONFIG if there is no store, CANNOT_CREATE if the target exists, IO otherwise, also if the data is damaged.
 * After an error no copy is left.
 */
export function backupStore(
  dataDir: string,
  target: string,
  mark: () => void = () => {},
  progress: WorkProgress = noProgress,
): void {
  const path = join(target, databaseName);
  // Written under another name until it is complete, so that an interrupted backup is never mistaken for a store.
  const part = `${path}.part`;
  const damage = damageInLog(join(dataDir, databaseName)); // before this process opens the files, see there
  const database = openToRead(dataDir);
  let ours: string | null = null;
  try {
    mkdirSync(target, { recursive: true, mode: 0o700 });
    if (existsSync(path)) throw alreadyExists(dataDir, target, path);
    closeSync(openSync(part, "wx", 0o600));
    ours = part;
    if (damage !== null) throw damagedData(dataDir, target, [damage]);
    progress.startPart({ noun: "byte", verb: "copied", total: usedBytes(database), file: part });
    database.prepare("VACUUM INTO ?").run(part); // which takes an empty file
    flushPath(part);
    checkCopy(dataDir, target, { part, progress });
    mark();
    renameSync(part, path);
    ours = path;
    flushParentFolders(target);
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (syscall === "mkdir") {
      const why = code === "EEXIST" ? `${target} exists and is not a folder` : messageOf(error);
      throw new BatonError("CANNOT_CREATE", `Cannot back up ${dataDir} to ${target}: ${why}`, { cause: error });
    }
    if (code === "EEXIST") {
      throw alreadyExists(dataDir, target, `${part}, of an interrupted or running backup,`);
    }
    if (ours !== null) { for (const name of [ours, `${ours}-journal`]) rmSync(name, { force: true }); }
    throw storeError(error, dataDir);
  } finally {
    database.close();
  }
}

/** Reads the copy back: damage in the store is also in the copy, and an older backup may still be good. */
function checkCopy(
  dataDir: string,
  target: string,
  { part, progress }: { readonly part: string; readonly progress: WorkProgress },
): void {
  using copy = new DatabaseSync(part, { readOnly: true });
  const { problems } = verifyRows(copy, progress);
  if (problems.length > 0) throw damagedData(dataDir, target, problems);
}

function damagedData(dataDir: string, target: string, problems: readonly string[]): BatonError {
  const [first = "", ...more] = problems;
  const rest = more.length === 0 ? "" : `, and ${countWithNoun(more.length, "other problem")}`;
  return new BatonError(
    "IO",
    `Cannot back up ${dataDir} to ${target}: ${first}${rest}. No copy is left; all problems: baton pubsub server verify`,
  );
}

function alreadyExists(dataDir: string, target: string, what: string): BatonError {
  return new BatonError("CANNOT_CREATE", `Cannot back up ${dataDir} to ${target}: ${what} already exists`);
}
