/** Errors of SQLite and of the file system, and their meaning for a store. Pure. */
import { BatonError, errorMessage } from "../errors.ts";

/** SQLITE_IOERR_SHMSIZE. */
const noSharedMemory = 4874;

/** Returns whether an error says that another process still has the lock at the end of SQLite's busy timeout. */
export function isDatabaseLocked(error: unknown): boolean {
  return saysSqlite(error, /locked|busy/i);
}

/**
 * SQLITE_FULL or ENOSPC: a write found no space. SQLite reports it before the last frame of a commit is in the log, so
 * nothing was stored. The shared memory of a log that is opened finds none as an error of its own. A failed flush is
 * another error.
 */
export function isDiskFullError(error: unknown): boolean {
  const { code, errcode } = error as NodeJS.ErrnoException & { readonly errcode?: number };
  return code === "ENOSPC" || errcode === noSharedMemory || saysSqlite(error, /database or disk is full/);
}

/** Errors of the system name a path, which may contain any word; those of baton are sentences. */
function saysSqlite(error: unknown, words: RegExp): boolean {
  if (error instanceof BatonError || (error as NodeJS.ErrnoException).syscall !== undefined) return false;
  return words.test(errorMessage(error));
}

/**
 * An error of a store as a BatonError; IO unless it is one. `what`: the subject of the sentence: "The topic store in
 * /data".
 */
export function storageError(what: string, error: unknown): BatonError {
  if (error instanceof BatonError) return error;
  return new BatonError("IO", `${what} cannot be read or written: ${errorMessage(error)}`, { cause: error });
}
