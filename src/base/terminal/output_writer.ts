/**
 * Writes to an open file, pipe, terminal or socket without blocking. Opens a pipe or a terminal a second time, because
 * other processes share the mode of the file that is open. poll(2) does not help: the command may write between poll
 * and the write. Threads do not help: on a machine with two processors, two blocked threads stop all file and name
 * operations of the runtime.
 */
import { constants, fstatSync, openSync, statSync, writeSync } from "node:fs";
import { errnoName } from "../errors.ts";
import { wasStreamClosedAtStart } from "../process/spawn/inherited_descriptors.ts";

/**
 * Writes some of the bytes without blocking. Returns the number of bytes written; 0 if the reader takes none now.
 * Throws system errors.
 */
export type NonBlockingWrite = (bytes: Uint8Array) => number;

/**
 * The most bytes in one write (PIPE_BUF of Linux). A pipe that is not full takes these bytes whole, and mixes them with
 * no other process's output.
 */
export const outputPieceBytesMax = 4096;
/** The number of pieces written in a row before the event loop runs again. */
export const outputBurstPiecesMax = 256;

/**
 * Returns the writer for a descriptor; null if drain_output.ts must find another way. Throws if the descriptor is
 * closed.
 */
export function openOutputWriter(fd: number): NonBlockingWrite | null {
  if (fd < 3 && wasStreamClosedAtStart(fd)) {
    throw new Error("it was closed when baton was started; to discard it, write >/dev/null");
  }
  const stat = fstatSync(fd);
  if (stat.isSocket()) return null;
  if (stat.isFIFO()) writeSync(fd, new Uint8Array()); // fails for a read end, which a second open could write to
  return stat.isFIFO() || isTerminal(fd) ? reopenOutputWriter(`/proc/self/fd/${fd}`) : writerTo(fd, 1 << 16);
}

/**
 * Opens a pipe or a terminal a second time. The new open file does not block, and the original one keeps its mode.
 * Returns null without /proc, or if the file belongs to another user.
 */
export function reopenOutputWriter(path: string): NonBlockingWrite | null {
  const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants;
  try {
    return writerTo(openSync(path, O_WRONLY | O_NONBLOCK | O_NOCTTY), outputPieceBytesMax);
  } catch {
    return null;
  }
}

function writerTo(fd: number, bytesMax: number): NonBlockingWrite {
  return (bytes) => {
    try {
      return writeSync(fd, bytes, 0, Math.min(bytes.length, bytesMax));
    } catch (thrown) {
      if (errnoName(thrown) === "EAGAIN") return 0;
      throw thrown;
    }
  };
}

/**
 * Returns true if a descriptor is a terminal. Loads node:tty, which takes milliseconds, only for character devices
 * other than /dev/null.
 */
export function isTerminal(fd: number): boolean {
  try {
    const stat = fstatSync(fd);
    if (!stat.isCharacterDevice() || stat.rdev === statSync("/dev/null").rdev) return false;
  } catch {
    return false; // closed
  }
  return process.getBuiltinModule("node:tty").isatty(fd);
}
