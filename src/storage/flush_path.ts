/** Puts on the disk what is still in memory of a file, or of the names in a folder. */
import { closeSync, fsyncSync, openSync } from "node:fs";

/** A file that was made, renamed or removed has to be found so after a power failure: flush its folder too. Throws the system's error. */
export function flushPath(path: string): void {
  const fd = openSync(path, "r");
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
