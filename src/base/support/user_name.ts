/** Finds the names of users. */
import { readFileSync } from "node:fs";
import process from "node:process";

/**
 * Returns the effective user's name for display. The first that exists is used: the name in the user database, the name
 * in the environment, the user's number. Does not use userInfo() of node:os, because Bun's version reads the
 * environment, which cron, sudo and `env -i` change.
 */
export function ownUserName(userDatabase: string = "/etc/passwd"): string {
  const uid = String(process.geteuid?.());
  const { LOGNAME, USER } = process.env;
  return findUserName(uid, userDatabase) ?? (LOGNAME || USER || uid);
}

/** Returns the name of a user; undefined if the user has no entry, or the database cannot be read. */
export function findUserName(uid: string, userDatabase: string = "/etc/passwd"): string | undefined {
  return readUserDatabaseEntry(uid, userDatabase)?.[0];
}

/**
 * Returns the fields of the user's line in the user database (passwd(5)); undefined if there is none, or the database
 * cannot be read.
 */
export function readUserDatabaseEntry(uid: string, userDatabase: string): readonly string[] | undefined {
  try {
    const lines = readFileSync(userDatabase, "utf8").split("\n");
    return lines.map((line) => line.split(":")).find((fields) => fields[2] === uid);
  } catch {
    return undefined; // containers may have no user database
  }
}
