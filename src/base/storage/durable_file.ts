/** Writes files and folder entries so that they survive a power failure. All functions throw the system's error. */
import { closeSync, fchmodSync, fsyncSync, openSync, statSync, writeFileSync, writeSync } from "node:fs";
import { dirname, resolve } from "node:path";

/**
 * Flushes the content of a file, or the entries of a folder. A caller that has created or renamed a file must also
 * flush its folder.
 */
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
 * Writes a file and flushes its content. If the file is new, the caller must also flush the folder. `flags` are for
 * `open`. The file has mode 600, whatever the umask is.
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

/**
 * Error codes for folders that this user may not read, and for file systems that cannot flush a folder. Such errors are
 * ignored.
 */
const ignoredErrors = ["EACCES", "EPERM", "EINVAL", "EBADF", "ENOTSUP"];

/**
 * Flushes the entries of a folder and of all its parents, up to the root. Needed if some of the folders may be new, for
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
 * Extends an existing file to `bytes` with zeros and flushes it. Does nothing if the file is missing or already longer.
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

/** Creates an empty file that only its owner can read, unless the file exists. SQLite gives its log the same mode. */
export function createPrivateFile(path: string): void {
  closeSync(openSync(path, "a", 0o600));
}
