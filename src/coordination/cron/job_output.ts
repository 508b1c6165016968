/** Writes the output of cron jobs to stderr, each line with the job's name, or to files for each run. */
import { accessSync, closeSync, constants, fstatSync, mkdirSync, readdirSync, unlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { BatonError, errnoName, systemCallErrorReason } from "../../base/errors.ts";
import { openOutputFile, refuseLinksOfOthers } from "../../base/support/open_output.ts";
import { encodeLockName } from "../nodes/node_paths.ts";
import { printable } from "../../base/support/text.ts";
import { writeAllBytes } from "../../base/support/write_whole.ts";
import { outputPieceBytesMax } from "../../base/terminal/output_writer.ts";
import type { LogSink } from "../../base/terminal/log_sink.ts";
import { escapeJsonControls } from "../../base/terminal/process_log.ts";

/**
 * The maximum length of a line, in UTF-16 units. Longer lines are split, because a line is kept in memory until its
 * end.
 */
export const jobOutputLineLengthMax = 16 * 1024 * 1024;
/** The longest lines, in UTF-16 units, that are written together. */
const shortLengthMax = 1000;
/** The maximum size of an output file in bytes. A longer output has several files. */
export const jobOutputFileBytesMax = 10 * 1024 * 1024;

export interface JobOutputRun {
  readonly name: string;
  readonly tickMs: number;
  readonly attempt: number;
  readonly pid: number;
}

export interface JobOutputPrintOptions extends JobOutputRun {
  readonly format: "text" | "json";
  /** True if the output goes to a terminal. Control characters must then be replaced. */
  readonly isTerminal: boolean;
}

/**
 * Prints lines as `backup[4711]: …`, or as objects of the log, until the end of the output. Lets other work run first:
 * endless output or a slow reader of the log must not delay the session.
 */
export async function printJobOutput(
  sink: Pick<LogSink, "write">,
  run: JobOutputPrintOptions,
  output: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let short = { text: "", bytes: 0 };
  /** The parts of the line whose end has not arrived yet. */
  let open = { parts: [] as string[], length: 0 };
  const flush = async () => {
    if (short.bytes > 0) await sink.write([short.text], signal);
    short = { text: "", bytes: 0 };
  };
  const endLine = async () => {
    const { parts, length } = open;
    open = { parts: [], length: 0 };
    const text = length <= shortLengthMax ? [...lineOf(run, parts)].join("") : null;
    const bytes = text === null ? Infinity : Buffer.byteLength(text);
    if (short.bytes + bytes > outputPieceBytesMax) await flush();
    if (text === null) await sink.write(lineOf(run, parts), signal);
    else short = { text: short.text + text, bytes: short.bytes + bytes };
  };
  const add = (text: string) => {
    const last = open.parts.pop() ?? "";
    // Joins short parts, so that there are neither many parts nor long ones.
    open.parts.push(...last.length < outputPieceBytesMax ? [last + text] : [last, text]);
    open.length += text.length;
  };
  for await (const chunk of output) {
    const [first = "", ...more] = decoder.decode(chunk, { stream: true }).split("\n");
    add(first);
    for (const part of more) {
      await endLine();
      add(part);
    }
    if (open.length > jobOutputLineLengthMax) await endLine();
    await flush();
  }
  add(decoder.decode());
  if (open.length > 0) await endLine();
  await flush();
}

/** Yields one line as it is printed, in parts that hold whole characters. */
function* lineOf(
  { name, pid, format, isTerminal }: JobOutputPrintOptions,
  parts: readonly string[],
): Generator<string, void, void> {
  if (format === "text") {
    yield `${printable(name)}[${pid}]: `;
    for (const [index, part] of parts.entries()) {
      yield isTerminal ? shown(index < parts.length - 1 ? part : part.replace(/\r$/, "")) : part;
    }
    return yield "\n";
  }
  const time = new Date().toISOString();
  const object = JSON.stringify({ time, level: "info", event: "output", message: "", name, pid });
  const at = object.indexOf('"message":"') + '"message":"'.length;
  yield object.slice(0, at);
  for (const part of parts) yield escaped(part);
  yield `${object.slice(at)}\n`;
}

/** Replaces control characters, because a terminal would obey them. */
function shown(text: string): string {
  return text.split("\t").map(printable).join("\t");
}

/** Returns the text as it appears inside a JSON string. */
function escaped(text: string): string {
  return escapeJsonControls(JSON.stringify(text).slice(1, -1));
}

/**
 * The folder of --output-dir. It contains a folder for each job, with files like `2026-11-24T0300Z-1.log` for each run.
 */
export class JobOutputFolder {
  readonly #folder: string;
  readonly #filesMax: number;

  /** `filesMax` is the number of files to keep for each job. Throws CANNOT_CREATE. */
  constructor(folder: string, filesMax: number) {
    this.#folder = folder;
    this.#filesMax = filesMax;
    try {
      refuseLinksOfOthers(folder);
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      accessSync(folder, constants.W_OK | constants.X_OK);
    } catch (cause) {
      throw new BatonError(
        "CANNOT_CREATE",
        `Cannot write into --output-dir ${folder}: ${systemCallErrorReason(cause)}`,
        {
          cause,
        },
      );
    }
  }

  /**
   * Writes the output to the run's files. Reads the output to its end even after a failure, because a command must not
   * wait for a full disk. Rejects with the first failure.
   */
  async write({ name, tickMs, attempt }: JobOutputRun, output: AsyncIterable<Uint8Array>): Promise<void> {
    const folder = join(this.#folder, encodeLockName(name));
    const run = `${new Date(tickMs).toISOString().slice(0, 16).replaceAll(":", "")}Z-${attempt}`;
    let failure: unknown = null;
    /** If an old file cannot be removed, the output is still written; the failure is reported at the end. */
    let removalFailure: unknown = null;
    using files = new RunFiles(join(folder, run), () => removalFailure ??= this.#removeOld(folder));
    const attemptTo = (work: () => void) => {
      try {
        if (failure === null) work();
      } catch (thrown) {
        failure = thrown;
      }
    };
    attemptTo(() => files.open());
    for await (const chunk of output) attemptTo(() => files.write(chunk));
    if ((failure ?? removalFailure) !== null) throw failure ?? removalFailure;
  }

  /** Removes the oldest files. Returns the first failure; null if there is none. */
  #removeOld(folder: string): unknown {
    const files = readdirSync(folder).flatMap((file) => {
      const [, time, attempt, number = "1"] = /^(\S+Z)-(\d+)(?:\.(\d+))?\.log$/.exec(file) ?? [];
      return time === undefined ? [] : [{ file, time, attempt: Number(attempt), number: Number(number) }];
    });
    files.sort((left, right) =>
      Number(left.time > right.time) - Number(left.time < right.time) || left.attempt - right.attempt ||
      left.number - right.number
    );
    let failure: unknown = null;
    for (const { file } of files.slice(0, Math.max(0, files.length - this.#filesMax))) {
      try {
        unlinkSync(join(folder, file));
      } catch (thrown) {
        if (errnoName(thrown) !== "ENOENT") failure ??= thrown; // another service of this host may have removed it
      }
    }
    return failure;
  }
}

/** The files of one run. */
class RunFiles implements Disposable {
  readonly #path: string;
  readonly #onOpened: () => void;
  #number = 0;
  #fd: number | null = null;
  #bytes = 0;

  /** `path` is the path of the files without number and extension. */
  constructor(path: string, onOpened: () => void) {
    this.#path = path;
    this.#onOpened = onOpened;
  }

  /** Opens the first file that is not full. Creates the folder again if it was removed. */
  open(): void {
    mkdirSync(dirname(this.#path), { recursive: true, mode: 0o700 });
    do {
      this[Symbol.dispose]();
      this.#number++;
      this.#fd = openOutputFile(`${this.#path}${this.#number === 1 ? "" : `.${this.#number}`}.log`, "append", 0o600);
      this.#bytes = fstatSync(this.#fd).size;
    } while (this.#bytes >= jobOutputFileBytesMax);
    this.#onOpened();
  }

  write(chunk: Uint8Array): void {
    if (this.#bytes >= jobOutputFileBytesMax) this.open();
    if (this.#fd !== null) writeAllBytes(this.#fd, chunk);
    this.#bytes += chunk.length;
  }

  [Symbol.dispose](): void {
    if (this.#fd !== null) closeSync(this.#fd);
    this.#fd = null;
  }
}
