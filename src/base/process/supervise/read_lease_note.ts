/** Reads the lease note of another process. `baton check` needs it, and no command that holds a lease. */
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { readProcessOrUnknown } from "../proc/process_table.ts";

/** A limit in bytes that is greater than the length of a note. The file of another process may have any length. */
const noteBytesMax = 256;

/**
 * Returns the end of the lease of `holderId`, in milliseconds on the boot clock. Returns null if the file no longer
 * exists or belongs to another process; both mean that the lock is lost. Throws other system errors, such as EACCES.
 */
export function readLeaseNote(path: string, holderId: string): number | null {
  const fd = openFileOfOtherProcess(path);
  if (fd === null) return null;
  const bytes = Buffer.alloc(noteBytesMax);
  let text: string;
  try {
    text = bytes.toString("latin1", 0, readSync(fd, bytes, 0, noteBytesMax, 0));
  } finally {
    closeSync(fd);
  }
  const [, id, end] = /^baton-lease (\S+) +(-?\d+)\n$/.exec(text) ?? [];
  return id === holderId && end !== undefined ? Number(end) : null;
}

/**
 * Opens a file of another process for reading, by its path /proc/PID/fd/N. Returns a descriptor, which the caller
 * closes. Returns null if that process has ended or closed the file, or if N now belongs to a pipe, socket, device or
 * folder. N may also belong to another file by now; the caller must detect that. Throws other system errors, such as
 * EACCES.
 */
function openFileOfOtherProcess(path: string): number | null {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENXIO" || code === "EISDIR") return null; // ENXIO: a socket
    if (hasEnded(Number(path.split("/")[2]))) return null; // after its end, the files of the process belong to root
    throw error;
  }
  if (fstatSync(fd).isFile()) return fd;
  closeSync(fd);
  return null;
}

function hasEnded(pid: number): boolean {
  const row = readProcessOrUnknown(pid);
  return row === null || (row !== "unknown" && (row.dead || row.isEnding));
}
