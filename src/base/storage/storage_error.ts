/** Tells what errors of SQLite and of the file system mean for a store: a lock, a full disk, or a failure. Pure. */
import { BatonError, errorMessage } from "../errors.ts";

/** SQLITE_IOERR_SHMSIZE. */
const noSharedMemory = 4874;

/** Returns true if an error says that another process still has the lock at the end of SQLite's busy timeout. */
export function isDatabaseLocked(error: unknown): boolean {
  return saysSqlite(error, /locked|busy/i);
}

/**
 * Returns true if a write failed because the disk is full (SQLITE_FULL or ENOSPC). Nothing was stored then: SQLite
 * reports a full disk before the last frame of a commit is in the log. SQLite has a separate error for a log whose
 * shared memory has no space. A failed flush does not count.
 */
export function isDiskFullError(error: unknown): boolean {
  const { code, errcode } = error as NodeJS.ErrnoException & { readonly errcode?: number };
  return code === "ENOSPC" || errcode === noSharedMemory || saysSqlite(error, /database or disk is full/);
}

/**
 * Returns true if SQLite's own message matches. Other errors contain paths and sentences in which the same words may
 * occur.
 */
function saysSqlite(error: unknown, words: RegExp): boolean {
  if (error instanceof BatonError || (error as NodeJS.ErrnoException).syscall !== undefined) return false;
  return words.test(errorMessage(error));
}

/**
 * Converts an error of a store to a BatonError with the code IO; returns a BatonError unchanged. `what` is the subject
 * of the message: "The topic store in /data".
 */
export function storageError(what: string, error: unknown): BatonError {
  if (error instanceof BatonError) return error;
  return new BatonError("IO", `${what} cannot be read or written: ${errorMessage(error)}`, { cause: error });
}
