/**
 * Appends dead letters to a file as lines of JSON. Each line is written exactly once and flushed, even after a crash.
 */
import { closeSync, fstatSync, fsyncSync, ftruncateSync, readSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { BatonError, systemCallErrorReason } from "../../base/errors.ts";
import { openOutputFile } from "../../base/support/open_output.ts";
import { flushPath } from "../../base/storage/durable_file.ts";
import type { ClaimedMessage } from "../queue/stored_message.ts";
import {
  type DeadLetterFormat,
  deadLetterLine,
  deadLetterLinePrefix,
  deadLetterLineStartText,
} from "./dead_letter_record.ts";
import type { DeadLetterSink, DeadLetterSinkSession } from "./dead_letter_forwarder.ts";

export interface FileSinkOptions extends DeadLetterFormat {
  readonly path: string;
  /** Locks the file for this process until the descriptor is closed. Returns false if another process has the lock. */
  readonly lockFile: (fd: number) => boolean;
}

export class FileSink implements DeadLetterSink {
  /** A line that a crash left incomplete must be repaired first, by sending its dead letter again. */
  readonly skipsFailed = false;
  readonly #options: FileSinkOptions;

  constructor(options: FileSinkOptions) {
    this.#options = options;
  }

  // deno-lint-ignore require-await -- the interface is asynchronous for sinks on other machines
  async open(): Promise<DeadLetterSinkSession | null> {
    const { path, lockFile } = this.#options;
    try {
      // The file is opened for reading as well, because its end is read after a crash.
      const fd = openOutputFile(path, "extend", 0o600);
      if (lockFile(fd)) {
        endLastLine(fd);
        flushPath(dirname(path));
        return new OpenFileSink(path, fd, this.#options);
      }
      closeSync(fd);
      return null;
    } catch (error) {
      throw fileError(path, error);
    }
  }
}

class OpenFileSink implements DeadLetterSinkSession {
  readonly #path: string;
  readonly #fd: number;
  readonly #format: DeadLetterFormat;

  constructor(path: string, fd: number, format: DeadLetterFormat) {
    this.#path = path;
    this.#fd = fd;
    this.#format = format;
  }

  nextOffset(): number {
    return fstatSync(this.#fd).size;
  }

  // deno-lint-ignore require-await -- the interface is asynchronous for sinks on other machines
  async send(letter: ClaimedMessage, offset: number | null): Promise<void> {
    try {
      const line = Buffer.from(deadLetterLine(letter, this.#format));
      const size = this.nextOffset();
      // If the file is shorter than the offset, its owner has replaced or truncated it, so the line is not in the file.
      const tail = offset !== null && offset < size ? readText(this.#fd, offset, size) : "";
      const plan = planDeadLetterAppend(tail, line.toString("latin1"), deadLetterLinePrefix(letter));
      if (plan === "cut") ftruncateSync(this.#fd, size - (tail.length - 1 - tail.lastIndexOf("\n")));
      if (plan !== "present") writeAll(this.#fd, line);
      fsyncSync(this.#fd);
    } catch (error) {
      throw fileError(this.#path, error);
    }
  }

  close(): void {
    closeSync(this.#fd);
  }
}

/**
 * Decides how to write a dead letter after a crash. `tail` is the content of the file from the recorded offset.
 * `prefix` identifies the line. `present`: the file contains the whole line. `cut`: a part of the line must be removed
 * first. `append`: the line must only be appended.
 */
export function planDeadLetterAppend(tail: string, line: string, prefix = line): "present" | "cut" | "append" {
  const end = tail.lastIndexOf("\n") + 1;
  if (`\n${tail.slice(0, end)}`.includes(`\n${prefix}`)) return "present";
  const last = tail.slice(end);
  // The end of an incomplete line may differ, because it may have been written with another redaction.
  return last !== "" && (line.startsWith(last) || last.startsWith(prefix)) ? "cut" : "append";
}

/**
 * Removes a line that a crash left incomplete; the next line would otherwise become a part of it. Its dead letter is
 * sent again. After an unfinished line of another program, adds a newline.
 */
function endLastLine(fd: number): void {
  const { size } = fstatSync(fd);
  if (size === 0 || readText(fd, size - 1, size) === "\n") return;
  const start = startOfLastLine(fd, size);
  const first = readText(fd, start, Math.min(size, start + deadLetterLineStartText.length));
  if (deadLetterLineStartText.startsWith(first)) ftruncateSync(fd, start);
  else writeAll(fd, Buffer.from("\n"));
}

/** The number of bytes of the file that are read at a time. */
const chunkBytes = 64 << 10;

function startOfLastLine(fd: number, size: number): number {
  for (let end = size; end > 0; end -= chunkBytes) {
    const from = Math.max(0, end - chunkBytes);
    const newline = readText(fd, from, end).lastIndexOf("\n");
    if (newline >= 0) return from + newline + 1;
  }
  return 0;
}

/** Reads one character for each byte, so that an incomplete UTF-8 sequence is kept. */
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
  return new BatonError("IO", `Cannot write dead letters to ${path}: ${systemCallErrorReason(error)}`, {
    cause: error,
  });
}
