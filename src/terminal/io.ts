/** Output, environment and terminal of the process. Tests replace this interface. */
import { fstatSync, statSync } from "node:fs";
import { errnoOf, writeWhole } from "../support/write_whole.ts";
import { BatonError, messageOf } from "../errors.ts";
import { inheritedDescriptors } from "../process/spawn/inherited_descriptors.ts";

export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdinIsTerminal: boolean;
  readonly stdoutIsTerminal: boolean;
  readonly stderrIsTerminal: boolean;
  /** Descriptors from 3 up that were open when the process started. */
  readonly inheritedFds: readonly number[];
  /** Columns of the terminal; 80 without a terminal. */
  readonly columns: number;
  /** Writes results to stdout. Throws IO if that fails, and `ReaderGone` if the reader has closed the pipe. */
  out(text: string): void;
  /** Writes messages to stderr. Failures are ignored: a closed stderr must not stop a command. */
  err(text: string): void;
}

/** The reader of stdout closed the pipe (`baton ls | head -1`): the process ends by SIGPIPE, like other programs. */
export class ReaderGone extends Error {
  override readonly name = "ReaderGone";
}

/** Must be called before any file is opened: all open descriptors count as inherited. */
export function systemIo(): Io {
  return {
    env: process.env,
    inheritedFds: inheritedDescriptors(),
    stdinIsTerminal: isTerminal(0),
    get stdoutIsTerminal() {
      return isTerminal(1); // few commands need it
    },
    stderrIsTerminal: isTerminal(2),
    get columns() {
      return process.stderr.columns || 80; // 0 if the terminal has no size
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
        // there is no other place for the message
      }
    },
  };
}

/** Prints sentences on stderr that no option suppresses. */
export function sayTo({ err }: Pick<Io, "err">): (sentence: string) => void {
  return (sentence) => err(`baton: ${sentence}\n`);
}

/** Prints one JSON object as a line on stdout. */
export function printJson<T>(io: Io, value: T): void {
  io.out(JSON.stringify(value) + "\n");
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
