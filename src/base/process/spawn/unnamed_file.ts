/**
 * Makes files without a name, in memory if possible: they end with the last process that has them open. Other processes
 * reach them through /proc. Linux only, except for the standard input of a command.
 */
import { closeSync, constants, fstatSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { BatonError, errorMessage } from "../../errors.ts";
import { newGuid } from "../../support/guid.ts";
import { probeProcess } from "../proc/process_table.ts";

/** A folder whose files are in memory, and one that exists everywhere. */
const folders = ["/dev/shm", "/tmp"];
/** O_TMPFILE of open(2), without O_DIRECTORY: makes a file without a name. The same for x64 and arm64. */
const unnamed = 0o20000000;

/**
 * Makes a file with `content` and returns its descriptor, for reading and writing, positioned at the beginning; the
 * caller closes it. Space is allocated immediately: a full folder is skipped. Returns null if no such file can be made.
 */
export function openUnnamedFile(content: Uint8Array): number | null {
  for (const folder of folders) {
    const fd = openIn(folder);
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

/** Writes at explicit offsets, so that the descriptor's own position stays at the beginning. */
function writeContent(fd: number, content: Uint8Array): void {
  for (let at = 0; at < content.byteLength;) at += writeSync(fd, content, at, content.byteLength - at, at);
}

function openIn(folder: string): number | null {
  try {
    return openSync(folder, constants.O_RDWR | constants.O_DIRECTORY | unnamed, 0o600);
  } catch {
    return null; // missing, not writable, or a file system without such files
  }
}

/**
 * Opens a file of another process for reading, by its path /proc/PID/fd/N. Returns the descriptor, which the caller
 * closes. Returns null if that process has ended or closed the file, or if the number now belongs to a pipe, socket,
 * device or folder. The caller must recognize another file. Throws other system errors, such as EACCES.
 */
export function openThroughProc(path: string): number | null {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENXIO" || code === "EISDIR") return null; // ENXIO: a socket
    if (hasEnded(Number(path.split("/")[2]))) return null; // its files are root's from then on
    throw error;
  }
  if (fstatSync(fd).isFile()) return fd;
  closeSync(fd);
  return null;
}

function hasEnded(pid: number): boolean {
  const row = probeProcess(pid);
  return row === null || (row !== "unknown" && (row.dead || row.isEnding));
}

/**
 * Makes a file with a message's body for the standard input of a command, and returns its descriptor, positioned at the
 * beginning; the caller closes it. Throws IO.
 */
export function openMessageBodyFile(body: Uint8Array): number {
  try {
    return openUnnamedFile(body) ?? openRemoved(body);
  } catch (error) {
    const message =
      `Cannot write ${body.byteLength} bytes to a file in ${tmpdir()} for the standard input of a command: ${
        errorMessage(error)
      }`;
    throw new BatonError("IO", message, { cause: error });
  }
}

/** Makes a named file and removes the name. */
function openRemoved(body: Uint8Array): number {
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
