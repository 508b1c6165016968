/** A file without a name, in memory where that can be had: gone with this process, and others reach it through /proc. Linux only. */
import { closeSync, constants, openSync, writeSync } from "node:fs";

/** Where files are memory; else any folder will do. */
const folders = ["/dev/shm", "/tmp"];
/** open(2) of a folder with this makes a file in it that has no name. The flag on top of O_DIRECTORY, the same for x64 and arm64. */
const unnamed = 0o20000000;

/**
 * Its descriptor, for reading and writing, with its place at the beginning; the caller closes it. `content` is in it, and takes
 * its room at once: a folder that is full counts as none. Null where there is no such file.
 */
export function openUnnamedFile(content: Uint8Array): number | null {
  for (const folder of folders) {
    const fd = openIn(folder);
    if (fd === null) continue;
    try {
      writeWhole(fd, content);
      return fd;
    } catch {
      closeSync(fd); // full, or longer than files may be (RLIMIT_FSIZE)
    }
  }
  return null;
}

/** With a place in each call the descriptor's own stays where it is. Throws what the system says. */
export function writeWhole(fd: number, content: Uint8Array): void {
  for (let at = 0; at < content.byteLength;) at += writeSync(fd, content, at, content.byteLength - at, at);
}

function openIn(folder: string): number | null {
  try {
    return openSync(folder, constants.O_RDWR | constants.O_DIRECTORY | unnamed, 0o600);
  } catch {
    return null; // not there, not writable, or a file system without such files
  }
}
