/** Makes room for a unix socket where one was left behind, and takes away nothing else: a file, or somebody who is listening. */
import { type BigIntStats, lstatSync, rmSync } from "node:fs";
import process from "node:process";
import { type Clock, systemClock } from "../support/clock.ts";
import { deadlineAfter } from "../support/deadline.ts";
import { dial as systemDial } from "./dial.ts";
import { type Dial } from "./connection.ts";

/** The system's room for a unix socket's path, without the zero at its end. */
export const socketPathBytesMax = process.platform === "linux" ? 107 : 103;

/** Milliseconds; who has not answered by then is there, and busy. */
const answerMsMax = 2_000;

/** What a connection to a socket fails with that nobody stands behind. */
const noListenerCodes: readonly unknown[] = ["ECONNREFUSED", "ENOENT"];

const inUse = "somebody else listens there already";

export interface ClearSocketOptions {
  /** The caller knows that whoever still listens there has no right to: it is taken away from him. */
  readonly mayTakeOver?: boolean;
  /** How it is found out whether somebody answers. */
  readonly dial?: Dial;
  readonly clock?: Clock;
}

/** Throws the end of a sentence when something stays in the way. */
export async function clearSocketPath(
  path: string,
  { mayTakeOver = false, dial = systemDial, clock = systemClock() }: ClearSocketOptions = {},
): Promise<void> {
  const bytes = Buffer.byteLength(path);
  if (bytes > socketPathBytesMax) {
    throw new Error(`a socket's path has ${socketPathBytesMax} bytes at most, and this one has ${bytes}`);
  }
  const found = socketFile(path);
  if (found === null) return;
  if (!found.isSocket()) throw new Error("a file that is no socket stands there");
  if (!mayTakeOver && await hasListener(path, dial, clock)) throw new Error(inUse);
  const again = socketFile(path);
  // Somebody else may have cleared it and bound in the meantime.
  if (again !== null && !isSameFile(again, found)) throw new Error(inUse);
  rmSync(path, { force: true });
}

/** Whatever stands at a socket's path; null when nothing does. */
export function socketFile(path: string): BigIntStats | null {
  return lstatSync(path, { bigint: true, throwIfNoEntry: false }) ?? null;
}

/** The number of a file that was removed is given to the next one at once, which has another time; a change of mode has not. */
export function isSameFile(one: BigIntStats, other: BigIntStats | null): boolean {
  return one.ino === other?.ino && one.dev === other.dev && one.mtimeNs === other.mtimeNs;
}

async function hasListener(path: string, dial: Dial, clock: Clock): Promise<boolean> {
  const deadline = deadlineAfter(clock, answerMsMax, { reason: () => new Error("no answer") });
  try {
    (await dial({ kind: "unix", path }, { data() {}, closed() {} }, { signal: deadline.signal })).destroy();
    return true;
  } catch (error) {
    // Anything else, such as a queue of connections that is full, is no proof that nobody is there.
    return !noListenerCodes.includes((error as NodeJS.ErrnoException).code);
  } finally {
    deadline.cancel();
  }
}
