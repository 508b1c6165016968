/**
 * How to write to an open file, pipe, terminal or socket without blocking. A pipe or a terminal is opened again: its
 * mode belongs to all processes that have it, poll(2) does not know what the command writes between it and the write,
 * and two threads that are blocked in a write stop all files and names of the runtime on a machine with two processors.
 */
import { constants, fstatSync, openSync, statSync, writeSync } from "node:fs";
import { errnoName } from "../errors.ts";
import { wasStreamClosedAtStart } from "../process/spawn/inherited_descriptors.ts";

/**
 * Writes some of the bytes without blocking. Returns how many; 0: the reader takes none now. Throws the system's error.
 */
export type NonBlockingWrite = (bytes: Uint8Array) => number;

/**
 * A pipe that accepts anything accepts this much in one piece, without the output of other processes in it (PIPE_BUF of
 * Linux).
 */
export const outputPieceBytesMax = 4096;
/** The event loop runs after this many pieces. */
export const outputBurstPiecesMax = 256;

/** Null for an output that can only be written by other means. Throws if it is closed. */
export function openOutputWriter(fd: number): NonBlockingWrite | null {
  if (fd < 3 && wasStreamClosedAtStart(fd)) {
    throw new Error("it was closed when baton was started; to discard it, write >/dev/null");
  }
  const stat = fstatSync(fd);
  if (stat.isSocket()) return null;
  if (stat.isFIFO()) writeSync(fd, new Uint8Array()); // fails for the read end, which could be opened again for writing
  return stat.isFIFO() || isTerminal(fd) ? reopenOutputWriter(`/proc/self/fd/${fd}`) : writerTo(fd, 1 << 16);
}

/**
 * Opens a pipe or a terminal a second time, so that this open file alone does not block. Null: there is no /proc, or it
 * is another user's.
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

/** Loading node:tty takes milliseconds, so it is loaded for character devices only; /dev/null is one, too. */
export function isTerminal(fd: number): boolean {
  try {
    const stat = fstatSync(fd);
    if (!stat.isCharacterDevice() || stat.rdev === statSync("/dev/null").rdev) return false;
  } catch {
    return false; // closed
  }
  return process.getBuiltinModule("node:tty").isatty(fd);
}
