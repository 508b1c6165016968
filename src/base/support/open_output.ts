/**
 * Opens output files at paths that a user has named. In a folder where others may write, such as /tmp, another user can
 * first create a link, a FIFO or a file with that name. That user then chooses what baton overwrites, or reads what
 * baton writes. The checks are the same as the kernel's protected_symlinks, protected_hardlinks, protected_fifos and
 * protected_regular (proc(5)), which a system may turn off.
 */
import { closeSync, constants, fstatSync, ftruncateSync, lstatSync, openSync, readlinkSync, type Stats } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import process from "node:process";
import { BatonError, errnoName } from "../errors.ts";
import { isSameFile } from "./one_file.ts";

const { O_RDWR, O_WRONLY, O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_TRUNC } = constants;

const accesses = {
  replace: O_WRONLY | O_TRUNC,
  append: O_WRONLY | O_APPEND,
  /** Opens the file for reading, too. */
  extend: O_RDWR | O_APPEND,
  update: O_RDWR,
} as const;

/**
 * Opens or creates a file, without waiting for the reader of a FIFO. Throws CANNOT_CREATE for a FIFO without a reader,
 * and for a file or link that another user has put there. Throws system errors.
 */
export function openOutputFile(path: string, access: keyof typeof accesses, mode = 0o666): number {
  try {
    if (path === "-") {
      throw new BatonError("CANNOT_CREATE", '"-" is not stdout here; for a file of this name, write ./-');
    }
    return openSafely(path, accesses[access] | O_NONBLOCK, mode);
  } catch (cause) {
    if (errnoName(cause) !== "ENXIO") throw cause;
    const message = `"${path}" is a FIFO that no process reads, or a socket; start the reader of a FIFO first`;
    throw new BatonError("CANNOT_CREATE", message, { cause });
  }
}

function openSafely(path: string, flags: number, mode: number): number {
  for (let tries = 1;; tries++) {
    const found = refuseLinksOfOthers(path);
    if (found === null) return openSync(path, flags | O_CREAT, mode);
    const { at, entry } = found;
    // Tries again, because another user may create the name at any moment. That user cannot replace a file that belongs
    // to this user.
    try {
      if (entry === null) return openSync(at, flags | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
      const fd = openSync(at, (flags & ~O_TRUNC) | O_NOFOLLOW);
      if (isSameFile(fstatSync(fd), entry)) {
        if ((flags & O_TRUNC) !== 0 && entry.isFile()) ftruncateSync(fd);
        return fd;
      }
      closeSync(fd);
    } catch (thrown) {
      if (tries >= triesMax || !changed.includes(errnoName(thrown) ?? "")) throw thrown;
    }
  }
}

const triesMax = 100;

/** The codes of errors that mean that another process created or removed the name after the check. */
const changed = ["EEXIST", "ENOENT", "ELOOP"];

const linksMax = 40;

/**
 * Checks every part of a path that is in a folder where other users may write. Throws CANNOT_CREATE for another user's
 * link, and at the end of the path for another user's file or FIFO. If others could create or replace the file, returns
 * where the path leads and the entry there; the entry is null if nothing exists yet. If others cannot, returns null.
 */
export function refuseLinksOfOthers(path: string): { readonly at: string; readonly entry: Stats | null } | null {
  let folder = isAbsolute(path) ? "/" : process.cwd();
  const parts = partsOf(path);
  for (let links = 0; parts.length > 0 && links < linksMax;) {
    const part = parts.shift() ?? "";
    if (part === "..") {
      folder = dirname(folder);
      continue;
    }
    const at = join(folder, part);
    const entry = lstatSync(at, { throwIfNoEntry: false });
    const isLast = parts.length === 0;
    const exposed = exposedFolder(folder);
    if (entry === undefined) return isLast && exposed !== null ? { at, entry: null } : null;
    if (exposed !== null) refuse(at, entry, { exposed, isLast });
    if (!entry.isSymbolicLink()) {
      if (isLast && exposed !== null) return { at, entry };
      folder = at;
      continue;
    }
    links++;
    if (at.startsWith("/proc/")) return null; // the path leads to an open file, not to another path
    const target = readlinkSync(at);
    parts.unshift(...partsOf(target));
    if (isAbsolute(target)) folder = "/";
  }
  return null;
}

const partsOf = (path: string) => path.split("/").filter((part) => part !== "" && part !== ".");

function refuse(at: string, entry: Stats, { exposed, isLast }: { exposed: Stats; isLast: boolean }): void {
  const what = isOfOthers(entry, exposed)
    ? kindOfOthers(entry, isLast && isSticky(exposed))
    : isLast && entry.isFile() && entry.nlink > 1
    ? "file with further names (hard links)"
    : null;
  if (what === null) return;
  throw new BatonError(
    "CANNOT_CREATE",
    `"${at}" is a ${what} in a folder where other users may write; name a file in another folder`,
  );
}

function kindOfOthers(entry: Stats, isProtected: boolean): string | null {
  const kind = entry.isSymbolicLink()
    ? "link"
    : !isProtected
    ? null
    : entry.isFIFO()
    ? "FIFO"
    : entry.isFile()
    ? "file"
    : null;
  return kind === null ? null : `${kind} of user ${entry.uid}`;
}

/** Returns the folder's entry if users other than its owner may write there; otherwise null. */
function exposedFolder(folder: string): Stats | null {
  const stat = lstatSync(folder, { throwIfNoEntry: false });
  return stat !== undefined && ((stat.mode & 0o002) !== 0 || (isSticky(stat) && (stat.mode & 0o020) !== 0))
    ? stat
    : null;
}

function isSticky({ mode }: Stats): boolean {
  return (mode & 0o1000) !== 0;
}

/** Returns true if the entry belongs neither to this user nor to the owner of the folder. */
function isOfOthers({ uid }: Stats, folder: Stats): boolean {
  return uid !== process.geteuid?.() && uid !== folder.uid;
}
