/** Makes room for a unix socket where one was left behind, and takes away nothing else: a file, or somebody who is listening. */
import { lstatSync, rmSync } from "node:fs";
import process from "node:process";
import { dial } from "./dial.ts";

/** The system's room for a unix socket's path, without the zero at its end. */
export const socketPathBytesMax = process.platform === "linux" ? 107 : 103;

/** Milliseconds; who has not answered by then is there, and busy. */
const answerMsMax = 2_000;

/** What a connection to a socket fails with that nobody stands behind. */
const nobodyThere: readonly unknown[] = ["ECONNREFUSED", "ENOENT"];

export interface ClearOptions {
  /** The caller knows that whoever still listens there has no right to: it is taken away from him. */
  readonly isMine: boolean;
}

/** Throws the end of a sentence when something stays in the way. */
export async function clearSocketPath(path: string, { isMine }: ClearOptions): Promise<void> {
  const bytes = Buffer.byteLength(path);
  if (bytes > socketPathBytesMax) {
    throw new Error(`a socket's path has ${socketPathBytesMax} bytes at most, and this one has ${bytes}`);
  }
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return;
  if (!found.isSocket()) throw new Error("a file that is no socket stands there");
  if (!isMine && await isAnswered(path)) throw new Error("somebody else listens there already");
  rmSync(path, { force: true });
}

async function isAnswered(path: string): Promise<boolean> {
  try {
    const signal = AbortSignal.timeout(answerMsMax);
    (await dial({ kind: "unix", path }, { data() {}, closed() {} }, { signal })).destroy();
    return true;
  } catch (error) {
    // Anything else, such as a queue of connections that is full, is no proof that nobody is there.
    return !nobodyThere.includes((error as NodeJS.ErrnoException).code);
  }
}
