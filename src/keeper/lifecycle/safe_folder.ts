/**
 * Checks that no other user can replace a folder. A user that may rename it, or a folder above it, could put another folder
 * there, in which a second keeper would grant the same locks. Changes nothing.
 */
import { lstatSync, type Stats, statSync } from "node:fs";
import process from "node:process";
import { BatonError, messageOf } from "../../errors.ts";

/**
 * The owner and the mode that a folder must have.
 * - `own`: owned by this user, accessible to no other user, not a link.
 * - `home`: a folder in the home that other programs use too. Owned by this user or root, may be a link, writable only for the
 *   owner and a group. Some systems make files writable for the user's own group. Other users that may write to ~/.local could
 *   run commands as this user anyway.
 * - `system`: writable for all users, like /var/tmp, but with the sticky bit, so that users can rename only their own files.
 */
export interface SafeFolder {
  readonly path: string;
  readonly rule: "own" | "home" | "system";
}

/** Throws CONFIG when an existing folder breaks its rule. A missing folder passes: its creator checks again. */
export function checkFolder({ path, rule }: SafeFolder): void {
  const found = statFolder(path);
  const stat = found?.isSymbolicLink() && rule !== "own" ? statSync(path, { throwIfNoEntry: false }) : found;
  if (found === null || stat === undefined || stat === null) return;
  const wrong = wrongKind(stat) ?? (rule === "system" ? null : wrongOwner([found, stat], rule)) ??
    wrongMode(stat, rule);
  if (wrong !== null) throw new BatonError("CONFIG", `The keeper's folder ${path} is not safe to use: ${wrong}`);
}

/** The folder's status, of a link the link's; null when this user cannot see it. Throws CONFIG when the status cannot be read. */
export function statFolder(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ENOTDIR" || code === "EACCES") return null; // does not exist for this user
    throw new BatonError("CONFIG", `Cannot read the status of ${path}: ${messageOf(error)}`);
  }
}

/** Throws CONFIG on systems without user IDs. */
export function userId(): number {
  const uid = process.geteuid?.();
  if (uid !== undefined) return uid;
  throw new BatonError("CONFIG", "This system has no user IDs, so the keeper cannot recognize its user");
}

function wrongKind(stat: Stats): string | null {
  if (stat.isSymbolicLink()) return "it is a link";
  return stat.isDirectory() ? null : "it is not a folder";
}

function wrongOwner(stats: readonly Stats[], rule: "own" | "home"): string | null {
  const otherOwner = stats.find(({ uid }) => uid !== userId() && !(rule === "home" && uid === 0));
  return otherOwner === undefined ? null : `it belongs to user ${otherOwner.uid}, not to ${userId()}`;
}

function wrongMode({ mode }: Stats, rule: SafeFolder["rule"]): string | null {
  const printed = (mode & 0o777).toString(8);
  if (rule === "own") {
    return (mode & 0o077) === 0 ? null : `its mode is ${printed}, which gives other users access: chmod 700`;
  }
  if ((mode & 0o1002) !== 0o0002) return null;
  const remedy = rule === "home" ? "o-w" : "+t";
  return `its mode is ${printed}, so other users can rename its files: chmod ${remedy}`;
}
