/**
 * Finds the folders in which baton keeps a user's state. They depend on the user database, because HOME and
 * XDG_STATE_HOME differ between cron, a login shell and sudo. Otherwise two keepers of one user would not exclude each
 * other.
 */
import { join, resolve } from "node:path";
import process from "node:process";
import { BatonError } from "../errors.ts";
import { readUserDatabaseEntry } from "./user_name.ts";

/**
 * Returns the home folder of a user; null if the user has no entry, as in containers. Reads the user database itself,
 * because Bun's userInfo() of node:os reads HOME.
 */
export function findHomeFolder(uid: number, userDatabase: string): string | null {
  const entry = readUserDatabaseEntry(String(uid), userDatabase);
  if (entry !== undefined) return entry[5] ?? null;
  const [command, args, field] = process.platform === "darwin"
    ? ["/usr/bin/id", ["-P"], 8] as const
    : ["getent", ["passwd", String(uid)], 5] as const;
  const { execFileSync } = process.getBuiltinModule("node:child_process");
  try {
    const line = execFileSync(command, args, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    return line.trim().split(":")[field] ?? null;
  } catch {
    return null;
  }
}

export const stateFolderVariables = {
  BATON_STATE_DIR:
    "an absolute path: the folder of all state of this user (keeper, topics, message stores, clients of " +
    "publish/subscribe), instead of ~/.local/state/baton of the home folder in the user database. XDG_STATE_HOME has " +
    "no effect: cron and sudo do not set it, and locks of two folders do not exclude each other",
} as const;

/** Returns the folder that BATON_STATE_DIR names; null if it is not set. Throws CONFIG for a relative path. */
export function findNamedStateFolder(env: Readonly<Record<string, string | undefined>>): string | null {
  const { BATON_STATE_DIR: named } = env;
  if (named === undefined || named === "") return null;
  if (named.startsWith("/")) return resolve(named);
  throw new BatonError("CONFIG", `BATON_STATE_DIR is "${named}", which is not an absolute path`);
}

/**
 * Returns the user's folder for a kind of state, such as `retry`. Throws CONFIG for a user without a home folder.
 * `advice` is the end of that message.
 */
export function userStateFolder(kind: string, advice: string): string {
  const named = findNamedStateFolder(process.env);
  if (named !== null) return join(named, kind);
  const uid = process.geteuid?.();
  const home = uid === undefined ? null : findHomeFolder(uid, "/etc/passwd");
  if (home?.startsWith("/") && home !== "/") return join(home, ".local/state/baton", kind);
  throw new BatonError("CONFIG", `This user has no home folder in the user database: ${advice}`);
}
