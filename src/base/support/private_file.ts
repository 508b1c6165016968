/** Reads files that settings name, and checks that only the owner can read a secret file. */
import { lstatSync, readFileSync, type Stats, statSync } from "node:fs";
import process from "node:process";
import { BatonError, systemCallErrorReason } from "../errors.ts";

/**
 * Reads a file that a setting names. Throws CONFIG, also for a FIFO, because reading it may never end; `what` describes
 * the file in the message.
 */
export function readConfiguredFile(file: string, what = file): Uint8Array {
  try {
    if (lstatSync(file).isFIFO()) throw new Error("it is a FIFO");
    return readFileSync(file);
  } catch (cause) {
    throw new BatonError("CONFIG", `Cannot read ${what}: ${systemCallErrorReason(cause)}`, { cause });
  }
}

/**
 * Throws CONFIG if other users may read the file. If root owns the file, its group may read it, as in PostgreSQL.
 * `what` is the beginning of the message.
 */
export function checkPrivateMode(file: string, what: string, { mode, uid }: Stats): void {
  const user = process.geteuid?.();
  const printed = (mode & 0o777).toString(8).padStart(3, "0");
  if (user !== undefined && uid !== user && uid !== 0) {
    throw configError(
      `${what} ${file} belongs to user ${uid}, who can read and change it: it must be owned by user ${user}`,
    );
  }
  if ((mode & (uid === 0 ? 0o037 : 0o077)) === 0) return;
  if (uid === 0 && user !== 0) {
    throw configError(`${what} ${file} has mode ${printed}, which gives other users access: chmod 640 ${file}`);
  }
  throw configError(`${what} ${file} has mode ${printed}, which lets other users read it: chmod 600 ${file}`);
}

/** Checks a file by its path. Accepts a pipe, such as the shell's `<(…)`. */
export function checkPrivateFile(file: string, what: string): void {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat?.isFile()) checkPrivateMode(file, what, stat);
}

const configError = (message: string): BatonError => new BatonError("CONFIG", message);
