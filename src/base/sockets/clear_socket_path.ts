/** Removes a stale Unix socket. Never removes another kind of file, or a socket that a process listens on. */
import { type BigIntStats, lstatSync, rmSync } from "node:fs";
import process from "node:process";
import { type Clock, systemClock } from "../support/clock.ts";
import { deadlineAfter } from "../support/deadline.ts";
import { dial as systemDial } from "./dial.ts";
import { type Dial } from "./connection.ts";

/** The maximum length of a unix socket's path, without the final zero byte. */
export const socketPathBytesMax = process.platform === "linux" ? 107 : 103;

/**
 * How long to wait until a connection is accepted, in milliseconds. After this time, baton assumes that a busy process
 * listens.
 */
const responseMsMax = 2_000;

/** Error codes for a socket that no process listens on. */
const noListenerCodes: readonly unknown[] = ["ECONNREFUSED", "ENOENT"];

const inUse = "another process already listens there";

export interface ClearSocketOptions {
  /** True if the caller owns the path: the socket is then removed even if a process still listens there. */
  readonly mayTakeOver?: boolean;
  /** The function that connects to the path, to find out whether a process listens there. */
  readonly dial?: Dial;
  readonly clock?: Clock;
}

/**
 * Removes a stale socket at `path`. Rejects if the path cannot be used; the message of the error is the reason, as the
 * end of a sentence.
 */
export async function clearSocketPath(
  path: string,
  { mayTakeOver = false, dial = systemDial, clock = systemClock() }: ClearSocketOptions = {},
): Promise<void> {
  const bytes = Buffer.byteLength(path);
  if (bytes > socketPathBytesMax) {
    throw new Error(`a socket's path is limited to ${socketPathBytesMax} bytes; this one has ${bytes}`);
  }
  const found = statSocketFile(path);
  if (found === null) return;
  if (!found.isSocket()) throw new Error("the path is a file that is not a socket");
  if (!mayTakeOver && await hasListener(path, dial, clock)) throw new Error(inUse);
  const again = statSocketFile(path);
  // Another process may have replaced the socket with its own in the meantime.
  if (again !== null && !isSameFile(again, found)) throw new Error(inUse);
  rmSync(path, { force: true });
}

/** Returns the status of the file at a socket's path, or null if there is none. */
export function statSocketFile(path: string): BigIntStats | null {
  return lstatSync(path, { bigint: true, throwIfNoEntry: false }) ?? null;
}

/**
 * Returns true if two statuses belong to the same file. Compares the creation time too, because the kernel reuses the
 * inode of a removed file. A change of mode does not change that time.
 */
export function isSameFile(one: BigIntStats, other: BigIntStats | null): boolean {
  return one.ino === other?.ino && one.dev === other.dev && one.mtimeNs === other.mtimeNs;
}

async function hasListener(path: string, dial: Dial, clock: Clock): Promise<boolean> {
  using deadline = deadlineAfter(clock, responseMsMax, { reason: () => new Error("no answer") });
  try {
    (await dial({ kind: "unix", path }, { onData() {}, onClosed() {} }, { signal: deadline.signal })).destroy();
    return true;
  } catch (error) {
    // Other errors, such as a full backlog, may come from a socket on which a process listens.
    return !noListenerCodes.includes((error as NodeJS.ErrnoException).code);
  }
}
