/** Writes files and folder entries that must survive a power failure. All functions throw the system's error. */
import { closeSync, fchmodSync, fsyncSync, openSync, statSync, writeFileSync, writeSync } from "node:fs";
import { dirname, resolve } from "node:path";

/** Flushes a file's content, or a folder's entries. After creating or renaming a file, flush its folder too. */
export function flushPath(path: string): void {
  const fd = openSync(path, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Flushes a file or folder, unless it is missing. */
export function flushPathIfPresent(path: string): void {
  try {
    flushPath(path);
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    if (code !== "ENOENT" && code !== "ENOTDIR") throw thrown;
  }
}

/**
 * Writes a file and flushes its content. For a new file, the caller also flushes the folder. `flags` are for `open`.
 * The umask does not change the mode 600.
 */
export function writeFlushedFile(
  path: string,
  content: string | Uint8Array,
  { flags = "w", mode }: { readonly flags?: string; readonly mode?: number } = {},
): void {
  const fd = openSync(path, flags, mode);
  try {
    if (mode === 0o600) fchmodSync(fd, mode);
    writeFileSync(fd, content);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Error codes for folders that this user may not read, and for file systems that cannot flush a folder. */
const ignoredErrors = ["EACCES", "EPERM", "EINVAL", "EBADF", "ENOTSUP"];

/**
 * Flushes the entries of a folder and of all its parents, up to the root. Use it when some of them may be new, for
 * example because a killed process created them.
 */
export function flushParentFolders(path: string): void {
  for (let folder = resolve(path);; folder = dirname(folder)) {
    try {
      flushPath(folder);
    } catch (thrown) {
      if (!ignoredErrors.includes((thrown as NodeJS.ErrnoException).code ?? "")) throw thrown;
    }
    if (folder === dirname(folder)) return;
  }
}

/**
 * Extends an existing file to `bytes` with zeros and flushes it. Does nothing if the file is longer or missing.
 */
export function reserveFile(path: string, bytes: number): void {
  const length = statSync(path, { throwIfNoEntry: false })?.size;
  if (length === undefined || length >= bytes) return;
  const file = openSync(path, "r+");
  try {
    const zeros = new Uint8Array(1 << 20);
    for (let at = length; at < bytes;) {
      at += writeSync(file, zeros, 0, Math.min(zeros.byteLength, bytes - at), at);
    }
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Creates an empty file for its owner only, unless it exists. SQLite gives its log the same mode. */
export function createPrivateFile(path: string): void {
  closeSync(openSync(path, "a", 0o600));
}
