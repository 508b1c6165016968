/**
 * Backs up a topic store. The backup is a consistent snapshot even while a server uses the store and commits continue.
 */
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { BatonError, systemCallErrorReason } from "../../../base/errors.ts";
import { countWithNoun } from "../../../base/support/text.ts";
import { noProgress, type WorkProgress } from "../../../base/support/work_progress.ts";
import { copySqliteDatabase } from "../../../base/storage/sqlite_file.ts";
import { findWalDamage } from "../../../base/storage/wal_check.ts";
import { isDiskFullError, openTopicStoreToRead, topicDatabaseName, topicStoreError } from "./topic_database.ts";
import { verifyTopicDatabase } from "./verify_topic_store.ts";

/**
 * Copies the store in `dataDir` into the folder `target`, which becomes a data directory. Blocks until all data is
 * copied, so callers run it in a separate process or thread. Calls `mark` when the copy is complete, before the copy
 * gets its final name. Throws CONFIG if there is no store, CANNOT_CREATE if the target exists, and IO for all other
 * errors, including damaged data. Leaves no copy after an error.
 */
export function backupTopicStore(
  dataDir: string,
  target: string,
  mark: () => void = () => {},
  progress: WorkProgress = noProgress,
): void {
  const path = join(target, topicDatabaseName);
  const damage = findWalDamage(join(dataDir, topicDatabaseName)); // must come before this process opens the files
  const database = openTopicStoreToRead(dataDir);
  try {
    mkdirSync(target, { recursive: true, mode: 0o700 });
    if (existsSync(path)) throw alreadyExists(dataDir, target, path);
    const read = (copy: (from: DatabaseSync) => void) => {
      if (damage !== null) throw damagedData(dataDir, target, [damage]);
      copy(database);
    };
    copySqliteDatabase(read, path, {
      // Checks the copy: it has all damage of the store, and an older backup may still be undamaged.
      check: (copy) => {
        const { problems } = verifyTopicDatabase(copy, progress);
        if (problems.length > 0) throw damagedData(dataDir, target, problems);
        mark();
      },
      progress,
    });
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (syscall === "mkdir") {
      const why = code === "EEXIST" ? `${target} exists and is not a folder` : systemCallErrorReason(error);
      throw new BatonError("CANNOT_CREATE", `Cannot back up ${dataDir} to ${target}: ${why}`, { cause: error });
    }
    if (code === "EEXIST") {
      throw alreadyExists(dataDir, target, `${path}.part, of an interrupted or running backup,`);
    }
    if (isDiskFullError(error)) throw fullTarget(target, error); // this process has written only the target
    throw topicStoreError(error, dataDir);
  } finally {
    database.close();
  }
}

function fullTarget(target: string, cause: unknown): BatonError {
  return new BatonError("IO", `Cannot write the backup ${target}: its disk is full`, { cause });
}

function damagedData(dataDir: string, target: string, problems: readonly string[]): BatonError {
  const [first = "", ...more] = problems;
  const rest = more.length === 0 ? "" : `, and ${countWithNoun(more.length, "other problem")}`;
  return new BatonError(
    "IO",
    `Cannot back up ${dataDir} to ${target}: ${first}${rest}. No copy is left; all problems: ` +
      "baton pubsub server verify",
  );
}

function alreadyExists(dataDir: string, target: string, what: string): BatonError {
  return new BatonError("CANNOT_CREATE", `Cannot back up ${dataDir} to ${target}: ${what} already exists`);
}
