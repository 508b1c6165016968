/** A file without a name, in memory where that can be had: gone with this process, and others reach it through /proc. Linux only. */
import { constants, openSync } from "node:fs";

/** Where files are memory; else any folder will do. */
const folders = ["/dev/shm", "/tmp"];
/** open(2) of a folder with this makes a file in it that has no name. The flag on top of O_DIRECTORY, the same for x64 and arm64. */
const unnamed = 0o20000000;

/** Its descriptor, for reading and writing; the caller closes it. Null where there is no such file. */
export function openUnnamedFile(): number | null {
  for (const folder of folders) {
    try {
      return openSync(folder, constants.O_RDWR | constants.O_DIRECTORY | unnamed, 0o600);
    } catch {
      continue; // not there, not writable, or a file system without such files
    }
  }
  return null;
}
