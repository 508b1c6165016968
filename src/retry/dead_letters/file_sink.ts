/** Dead letters as lines of JSON in a file: each once, whole, flushed, whatever is killed when. */
import { closeSync, fstatSync, fsyncSync, ftruncateSync, openSync, readSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { BatonError, messageOf } from "../../errors.ts";
import { flushPath } from "../../storage/durable_file.ts";
import type { ClaimedMessage } from "../queue/stored_message.ts";
import { letterLine, letterLineStart, type LetterRules } from "./dead_letter_record.ts";
import type { LetterPlace, OpenPlace } from "./dead_letter_forwarder.ts";
import { planLetter } from "./plan_append.ts";

export interface FileLettersOptions extends LetterRules {
  readonly path: string;
  /** Takes the file for this process alone; false: another one has it. It is given back when the descriptor is closed. */
  readonly lockFile: (fd: number) => boolean;
}

export class FileLetters implements LetterPlace {
  /** Half a line that a crash has left is mended by the letter it belongs to. */
  readonly isEachAlone = false;
  readonly #options: FileLettersOptions;

  constructor(options: FileLettersOptions) {
    this.#options = options;
  }

  // deno-lint-ignore require-await -- as places that are not on this machine
  async open(): Promise<OpenPlace | null> {
    const { path, lockFile } = this.#options;
    try {
      // Read as well: after a crash it is looked at what is there.
      const fd = openSync(path, "a+", 0o600);
      if (lockFile(fd)) {
        flushPath(dirname(path));
        return new OpenFile(path, fd, this.#options);
      }
      closeSync(fd);
      return null;
    } catch (error) {
      throw fileError(path, error);
    }
  }
}

class OpenFile implements OpenPlace {
  readonly #path: string;
  readonly #fd: number;
  readonly #rules: LetterRules;

  constructor(path: string, fd: number, rules: LetterRules) {
    this.#path = path;
    this.#fd = fd;
    this.#rules = rules;
  }

  next(): number {
    return fstatSync(this.#fd).size;
  }

  // deno-lint-ignore require-await -- as above
  async send(letter: ClaimedMessage, at: number | null): Promise<void> {
    try {
      const line = Buffer.from(letterLine(letter, this.#rules));
      const size = this.next();
      // A file that has become shorter was replaced, or cut by its owner: what was in it is not there any more.
      const tail = at !== null && at < size ? readText(this.#fd, at, size) : "";
      const plan = planLetter(tail, line.toString("latin1"), letterLineStart(letter));
      if (plan === "cut") ftruncateSync(this.#fd, size - (tail.length - 1 - tail.lastIndexOf("\n")));
      if (plan !== "there") writeAll(this.#fd, line);
      fsyncSync(this.#fd);
    } catch (error) {
      throw fileError(this.#path, error);
    }
  }

  close(): void {
    closeSync(this.#fd);
  }
}

/** A character for each byte: half of one of UTF-8 is told from the other half. */
function readText(fd: number, from: number, to: number): string {
  const bytes = Buffer.alloc(to - from);
  let length = 0;
  while (length < bytes.byteLength) {
    const read = readSync(fd, bytes, length, bytes.byteLength - length, from + length);
    if (read === 0) break;
    length += read;
  }
  return bytes.toString("latin1", 0, length);
}

function writeAll(fd: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.byteLength;) at += writeSync(fd, bytes, at);
}

function fileError(path: string, error: unknown): BatonError {
  if (error instanceof BatonError) return error;
  return new BatonError("IO", `Cannot write dead letters to ${path}: ${messageOf(error)}`, { cause: error });
}
