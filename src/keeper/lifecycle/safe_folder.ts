/**
 * Whether a folder is where it seems to be, and stays there. Somebody who may rename it, or one above it, could put another
 * in its location, in which a second keeper would give away the same locks. Changes nothing.
 */
import { lstatSync, type Stats, statSync } from "node:fs";
import process from "node:process";
import { BatonError, messageOf } from "../../errors.ts";

/**
 * Whose a folder has to be.
 *
 * - `own`: baton's. This user's, open to nobody else, and no link.
 * - `home`: one in the home that other programs use too. This user's or root's, link or not, and nobody writes to it but they and a
 *   group: that of the user alone, on systems that make files writable to it; and whoever else may write to ~/.local could
 *   run commands as this user anyway.
 * - `system`: open to everybody, as /var/tmp is, but only with the sticky bit, by which everybody renames his own alone.
 */
export interface SafeFolder {
  readonly path: string;
  readonly rule: "own" | "home" | "system";
}

/** Throws CONFIG when what is there already is not as it has to be. What is missing is in order: whoever makes it checks again. */
export function checkFolder({ path, rule }: SafeFolder): void {
  const found = statFolder(path);
  const stat = found?.isSymbolicLink() && rule !== "own" ? statSync(path, { throwIfNoEntry: false }) : found;
  if (found === null || stat === undefined || stat === null) return;
  const wrong = wrongKind(stat) ?? (rule === "system" ? null : wrongOwner([found, stat], rule)) ??
    wrongMode(stat, rule);
  if (wrong !== null) throw new BatonError("CONFIG", `The keeper's folder ${path} is not safe to use: ${wrong}`);
}

/** What is there, a link for itself; null when there is nothing for this user. Throws CONFIG when that cannot be said. */
export function statFolder(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ENOTDIR" || code === "EACCES") return null; // not there for this user
    throw new BatonError("CONFIG", `Cannot look at ${path}: ${messageOf(error)}`);
  }
}

/** Throws CONFIG where users have no numbers. */
export function userId(): number {
  const uid = process.geteuid?.();
  if (uid !== undefined) return uid;
  throw new BatonError("CONFIG", "This system has no user ids, and the keeper cannot tell its user from others");
}

function wrongKind(stat: Stats): string | null {
  if (stat.isSymbolicLink()) return "it is a link";
  return stat.isDirectory() ? null : "it is not a folder";
}

function wrongOwner(stats: readonly Stats[], rule: "own" | "home"): string | null {
  const stranger = stats.find(({ uid }) => uid !== userId() && !(rule === "home" && uid === 0));
  return stranger === undefined ? null : `it belongs to user ${stranger.uid}, not to ${userId()}`;
}

function wrongMode({ mode }: Stats, rule: SafeFolder["rule"]): string | null {
  const printed = (mode & 0o777).toString(8);
  if (rule === "own") {
    return (mode & 0o077) === 0 ? null : `its mode is ${printed}, which lets others in; it has to be 700`;
  }
  if ((mode & 0o1002) !== 0o0002) return null;
  const remedy = rule === "home" ? "o-w" : "+t";
  return `its mode is ${printed}, and others may rename what is in it; chmod ${remedy} takes that away`;
}
