/** The other end of an unnamed file: what a process that is not this one has open, as /proc/PID/fd/N. */
import { closeSync, constants, fstatSync, openSync } from "node:fs";

/**
 * Its descriptor; the caller closes it. `access` is O_RDONLY or O_RDWR. Null when that process is gone or has closed it; also
 * when the number is by now a pipe's, a socket's, a device's or a folder's: a pipe would be waited for, and reading takes
 * from it. Another file in its place is for the caller to tell. Throws what else the system says, such as EACCES.
 */
export function openThroughProc(path: string, access: number): number | null {
  let fd: number;
  try {
    fd = openSync(path, access | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENXIO" || code === "EISDIR") return null; // ENXIO: a socket
    throw error;
  }
  if (fstatSync(fd).isFile()) return fd;
  closeSync(fd);
  return null;
}
