/** What a command may touch of its process: where it writes, what it reads its settings from. Tests put another in its place. */
import { fstatSync, statSync } from "node:fs";
import { errnoOf, writeWhole } from "../support/write_whole.ts";
import { BatonError, messageOf } from "../errors.ts";
import { inheritedDescriptors } from "../process/spawn/inherited_descriptors.ts";

export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdinIsTerminal: boolean;
  readonly stderrIsTerminal: boolean;
  /** Descriptors from 3 up that were open when the process started. */
  readonly inheritedFds: readonly number[];
  /** Columns of the terminal; 80 when there is none. */
  readonly columns: number;
  /** The answer. Throws IO when it cannot be written; `ReaderGone` when nobody reads it any more. */
  out(text: string): void;
  /** Chatter. What cannot be written is dropped: a closed stderr must not stop a job. */
  err(text: string): void;
}

/** The reader of stdout went away (`baton ls | head -1`): the process dies of SIGPIPE, as others do. */
export class ReaderGone extends Error {
  override readonly name = "ReaderGone";
}

/** Call it before anything is opened: what is open by then counts as inherited. */
export function systemIo(): Io {
  return {
    env: process.env,
    inheritedFds: inheritedDescriptors(),
    stdinIsTerminal: isTerminal(0),
    stderrIsTerminal: isTerminal(2),
    get columns() {
      return process.stderr.columns || 80; // 0 on a terminal that was not told its size
    },
    out(text) {
      try {
        writeWhole(1, text);
      } catch (thrown) {
        if (errnoOf(thrown) === "EPIPE") throw new ReaderGone();
        throw new BatonError("IO", `Cannot write to stdout: ${messageOf(thrown)}`, { cause: thrown });
      }
    },
    err(text) {
      try {
        writeWhole(2, text, { fullPipeMsMax: 100 });
      } catch {
        // nowhere to say it
      }
    },
  };
}

/** /dev/null is a character device too, and loading node:tty costs milliseconds of every start that has no terminal. */
function isTerminal(fd: number): boolean {
  try {
    const stat = fstatSync(fd);
    if (!stat.isCharacterDevice() || stat.rdev === statSync("/dev/null").rdev) return false;
  } catch {
    return false; // closed
  }
  return process.getBuiltinModule("node:tty").isatty(fd);
}
