/** Whether a file with a secret is kept as one. */
import { type Stats, statSync } from "node:fs";
import process from "node:process";
import { BatonError } from "../errors.ts";

/**
 * As PostgreSQL has it: one's own file is for oneself; one that root has put there may be for a group too, which only reads.
 * `what` begins the sentence. Throws CONFIG.
 */
export function checkPrivateMode(file: string, what: string, { mode, uid }: Stats): void {
  const user = process.geteuid?.();
  const printed = (mode & 0o777).toString(8).padStart(3, "0");
  if (user !== undefined && uid !== user && uid !== 0) {
    throw config(`${what} ${file} belongs to user ${uid}, who can read and change it; it has to be of user ${user}`);
  }
  if ((mode & (uid === 0 ? 0o037 : 0o077)) === 0) return;
  if (uid === 0 && user !== 0) {
    throw config(`${what} ${file} has mode ${printed}, which lets others in: chmod 640 ${file}`);
  }
  throw config(`${what} ${file} has mode ${printed}, which lets others read it: chmod 600 ${file}`);
}

/** The same of a file that was just read by its name; what is none, as a pipe of the shell's `<(…)`, is its maker's matter. */
export function checkPrivateFile(file: string, what: string): void {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat?.isFile()) checkPrivateMode(file, what, stat);
}

const config = (message: string): BatonError => new BatonError("CONFIG", message);
