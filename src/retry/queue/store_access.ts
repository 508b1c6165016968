/** Why a message store cannot be opened by a user who may not write to it, in words: SQLite knows no users. */
import { accessSync, constants, statSync } from "node:fs";
import process from "node:process";
import { BatonError, messageOf } from "../../errors.ts";
import { nameInDatabase, userName } from "../../support/user_name.ts";

/** Null: that is not what is wrong. `path`: the database. */
export function accessError(error: unknown, folder: string, path: string): BatonError | null {
  if (!/readonly|unable to open/i.test(messageOf(error)) || (mayWrite(folder) && mayWrite(path))) return null;
  const { uid } = statSync(folder);
  const owner = uid === process.geteuid?.() ? "this user's own" : `${nameInDatabase(String(uid)) ?? `user ${uid}`}'s`;
  // A reader of a write-ahead log notes in shared memory, a file beside it, how far it reads.
  const why = `its log takes a note of readers too; the store is ${owner}, and this is ${userName()}`;
  return new BatonError("IO", `The message store in ${folder} cannot be opened without write access: ${why}`, {
    cause: error,
  });
}

function mayWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}
