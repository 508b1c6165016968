/** Puts the way to a folder on the disk. */
import { dirname, resolve } from "node:path";
import { flushPath } from "./flush_path.ts";

/** A folder that this user may not read, and a file system that keeps names by itself: who made them has to see to it. */
const others = ["EACCES", "EPERM", "EINVAL", "EBADF", "ENOTSUP"];

/**
 * The names in the folder and in all above it, up to the root: whoever makes several at once, or finds what somebody made who
 * was killed, does not know which of them a power failure would take. Throws the system's error.
 */
export function flushFolders(path: string): void {
  for (let folder = resolve(path);; folder = dirname(folder)) {
    try {
      flushPath(folder);
    } catch (thrown) {
      if (!others.includes((thrown as NodeJS.ErrnoException).code ?? "")) throw thrown;
    }
    if (folder === dirname(folder)) return;
  }
}
