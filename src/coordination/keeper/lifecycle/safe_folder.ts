/**
 * Checks that no other user can replace a folder. A user who can rename the folder, or a folder above it, could put
 * another folder in its place. A second keeper in that folder would grant the same locks. Changes nothing.
 */
import { lstatSync, readlinkSync, realpathSync, type Stats, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import process from "node:process";
import { BatonError, systemCallErrorReason } from "../../../base/errors.ts";

/**
 * The owner and the mode that a folder must have.
 * - `own`: owned by this user, accessible to no other user, not a link.
 * - `home`: a folder in the home that other programs use too. It must belong to this user or root, may be a link, and
 *   is writable only for the owner and a group, because some systems make files writable for the user's own group.
 *   Other users that may write to ~/.local could run commands as this user anyway.
 * - `above`: a folder above a folder that the user has named. It must belong to this user or root, may be a link, and
 *   is writable for no other user, unless it has the sticky bit. Its group may write if it is this user's first group,
 *   which on many systems has no other member.
 * - `system`: writable for all users, like /var/tmp, but with the sticky bit, so that users can rename only their own
 *   files.
 */
export interface FolderToCheck {
  readonly path: string;
  readonly rule: "own" | "home" | "above" | "system";
}

/**
 * Returns all folders above a folder that the user named, from the top. If a part of the path is a link, includes the
 * folders above the link and above its target.
 */
export function foldersToCheckAbove(path: string): FolderToCheck[] {
  const found = new Set<string>();
  const add = (folder: string) => {
    if (found.has(folder)) return;
    found.add(folder);
    const target = targetOf(folder);
    if (target !== null) add(target);
    add(dirname(folder));
  };
  add(dirname(path));
  return [...found].sort().map((folder) => ({ path: folder, rule: "above" }));
}

/**
 * Returns the target of a link, which may be another link. Returns null if the path is not a link or does not exist.
 */
function targetOf(path: string): string | null {
  try {
    return resolve(realpathSync(dirname(path)), readlinkSync(path));
  } catch {
    return null;
  }
}

/**
 * Throws CONFIG if an existing folder violates its rule. Accepts a missing folder, because the code that creates it
 * checks again.
 */
export function checkSafeFolder({ path, rule }: FolderToCheck): void {
  const found = statKeeperFolder(path);
  const stat = found?.isSymbolicLink() && rule !== "own" ? statSync(path, { throwIfNoEntry: false }) : found;
  if (found === null || stat === undefined || stat === null) return;
  const wrong = wrongKind(stat) ?? (rule === "system" ? null : wrongOwner([found, stat], rule)) ??
    wrongMode(stat, rule);
  if (wrong !== null) throw new BatonError("CONFIG", `The keeper's folder ${path} is not safe to use: ${wrong}`);
}

/**
 * Returns the status of the folder or link itself, or null if this user cannot see it. Throws CONFIG if the status
 * cannot be read.
 */
export function statKeeperFolder(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ENOTDIR" || code === "EACCES") return null; // does not exist for this user
    throw new BatonError("CONFIG", `Cannot read the status of ${path}: ${systemCallErrorReason(error)}`);
  }
}

/** Returns the effective user ID. Throws CONFIG on systems without user IDs. */
export function effectiveUserId(): number {
  const uid = process.geteuid?.();
  if (uid !== undefined) return uid;
  throw new BatonError("CONFIG", "This system has no user IDs, so the keeper cannot recognize its user");
}

function wrongKind(stat: Stats): string | null {
  if (stat.isSymbolicLink()) return "it is a link";
  return stat.isDirectory() ? null : "it is not a folder";
}

function wrongOwner(stats: readonly Stats[], rule: "own" | "home" | "above"): string | null {
  const otherOwner = stats.find(({ uid }) => uid !== effectiveUserId() && !(rule !== "own" && uid === 0));
  return otherOwner === undefined ? null : `it belongs to user ${otherOwner.uid}, not to ${effectiveUserId()}`;
}

function wrongMode({ mode, gid }: Stats, rule: FolderToCheck["rule"]): string | null {
  const printed = (mode & 0o777).toString(8);
  if (rule === "own") {
    return (mode & 0o077) === 0 ? null : `its mode is ${printed}, which gives other users access: chmod 700`;
  }
  const isGroups = rule === "above" && gid !== process.getegid?.() && (mode & 0o1020) === 0o0020;
  if ((mode & 0o1002) !== 0o0002 && !isGroups) return null;
  const remedy = rule === "system" ? "+t" : isGroups ? "go-w" : "o-w";
  return `its mode is ${printed}, so other users can rename its files: chmod ${remedy}`;
}
