/** Finds the user's home folder in the user database: it is the same in cron, in a login shell and under sudo. */
import { join } from "node:path";
import process from "node:process";
import { BatonError } from "../errors.ts";
import { readUserDatabaseEntry } from "./user_name.ts";

/**
 * Returns null for a user without an entry, as in containers. node:os has userInfo() for this, but Bun's reads HOME.
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

/**
 * Returns the user's folder for a kind of state, such as `retry`. Throws CONFIG for a user without a home folder;
 * `advice` ends the message.
 */
export function userStateFolder(kind: string, advice: string): string {
  const uid = process.geteuid?.();
  const home = uid === undefined ? null : findHomeFolder(uid, "/etc/passwd");
  if (home?.startsWith("/") && home !== "/") return join(home, ".local/state/baton", kind);
  throw new BatonError("CONFIG", `This user has no home folder in the user database: ${advice}`);
}
