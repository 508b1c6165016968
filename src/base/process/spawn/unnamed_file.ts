/**
 * Makes files without a name, in memory if possible. Such a file disappears when no process has it open. Other
 * processes reach the file through /proc. Linux only, except for the standard input of a command.
 */
import { closeSync, constants, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BatonError, errorMessage } from "../../errors.ts";
import { newGuid } from "../../support/guid.ts";

/** The first folder keeps its files in memory; the second exists everywhere. */
const folders = ["/dev/shm", "/tmp"];
/** O_TMPFILE of open(2) without O_DIRECTORY, which makes a file without a name. x64 and arm64 have the same value. */
const unnamed = 0o20000000;

/**
 * Makes a file with `content`. Returns its descriptor for reading and writing, positioned at the beginning; the caller
 * closes it. Allocates the space immediately, so that a folder without free space is skipped. Returns null if no such
 * file can be made.
 */
export function openUnnamedFile(content: Uint8Array): number | null {
  for (const folder of folders) {
    const fd = openUnnamedFileIn(folder);
    if (fd === null) continue;
    try {
      writeContent(fd, content);
      return fd;
    } catch {
      closeSync(fd); // full, or longer than files may be (RLIMIT_FSIZE)
    }
  }
  return null;
}

/** Writes at explicit offsets, so that the position of the descriptor does not move. */
function writeContent(fd: number, content: Uint8Array): void {
  for (let at = 0; at < content.byteLength;) at += writeSync(fd, content, at, content.byteLength - at, at);
}

/** Makes an empty file. Returns null if the folder cannot have such a file. */
export function openUnnamedFileIn(folder: string): number | null {
  try {
    return openSync(folder, constants.O_RDWR | constants.O_DIRECTORY | unnamed, 0o600);
  } catch {
    return null; // the folder is missing, not writable, or on a file system without unnamed files
  }
}

/**
 * Makes a file with the body of a message, for the standard input of a command. Returns its descriptor, positioned at
 * the beginning; the caller closes it. Throws IO.
 */
export function openMessageBodyFile(body: Uint8Array): number {
  try {
    return openUnnamedFile(body) ?? openRemovedFile(body);
  } catch (error) {
    const message =
      `Cannot write ${body.byteLength} bytes to a file in ${tmpdir()} for the standard input of a command: ${
        errorMessage(error)
      }`;
    throw new BatonError("IO", message, { cause: error });
  }
}

/** Makes a file in the folder for temporary files, and removes its name. Throws system errors. */
export function openRemovedFile(body: Uint8Array): number {
  const path = join(tmpdir(), `baton-${newGuid()}`);
  const fd = openSync(path, "wx+", 0o600);
  rmSync(path);
  try {
    writeContent(fd, body);
    return fd;
  } catch (error) {
    closeSync(fd);
    throw error;
  }
}
