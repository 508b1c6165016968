/** The output of jobs: each line with the job's name on stderr, or one file for each run. */
import { closeSync, mkdirSync, openSync, readdirSync, unlinkSync } from "node:fs";
import { join } from "node:path";
import { BatonError, messageOf } from "../../src/errors.ts";
import { encodeLockName } from "../../src/coordination/lock/lock_path.ts";
import { printable } from "../../src/support/text.ts";
import { writeWhole } from "../../src/support/write_whole.ts";
import { type LogSink, pieceBytesMax } from "../../src/terminal/service_stderr.ts";

/** A longer line is divided, because it is kept in memory until its end. UTF-16 units, of which each may be three bytes. */
const lineLengthMax = 1200;

export interface OutputRun {
  readonly name: string;
  readonly tickMs: number;
  readonly attempt: number;
  readonly pid: number;
}

/**
 * Prints lines as `backup[4711]: …`, or as objects of the log, until the end of the output. Lines are written in pieces, and other work
 * of the process goes first: the session of the locks must not wait for a command that prints without end, or for a reader of the log.
 */
export async function printOutput(
  sink: LogSink,
  { name, pid, format }: OutputRun & { readonly format: "text" | "json" },
  output: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  const decoder = new TextDecoder();
  const label = `${printable(name)}[${pid}]: `;
  let rest = "";
  let piece = { text: "", bytes: 0 };
  const flush = async () => {
    if (piece.bytes === 0) return;
    await sink.ready(signal);
    sink.err(piece.text);
    piece = { text: "", bytes: 0 };
  };
  const formatted = (message: string) => {
    if (format === "text") return `${label}${message}\n`;
    return `${
      JSON.stringify({ time: new Date().toISOString(), level: "info", event: "output", message, name, pid })
    }\n`;
  };
  const print = async (lines: readonly string[]) => {
    for (const line of lines) {
      const text = formatted(line);
      const bytes = Buffer.byteLength(text);
      if (piece.bytes + bytes > pieceBytesMax) await flush();
      piece = { text: piece.text + text, bytes: piece.bytes + bytes };
    }
    await flush();
  };
  for await (const chunk of output) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n").flatMap(dividedLine);
    rest = lines.pop() ?? "";
    await print(lines);
  }
  rest += decoder.decode();
  if (rest !== "") await print([rest]);
}

function dividedLine(line: string): string[] {
  const parts: string[] = [];
  for (; line.length > lineLengthMax; line = line.slice(lineLengthMax)) parts.push(line.slice(0, lineLengthMax));
  return [...parts, line];
}

/** A folder with a folder for each name, which has a file for each run: `2026-11-24T0300Z-1.log`. */
export class OutputFolder {
  readonly #folder: string;
  readonly #filesMax: number;

  /** Throws CANNOT_CREATE. `filesMax`: number of files of a name that are kept. */
  constructor(folder: string, filesMax: number) {
    this.#folder = folder;
    this.#filesMax = filesMax;
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
    } catch (cause) {
      throw new BatonError("CANNOT_CREATE", `Cannot create --output-dir ${folder}: ${messageOf(cause)}`, { cause });
    }
  }

  /** Copies the output to the run's file. Reads it to its end in any case: a command must not wait for a full disk. Rejects with the first failure. */
  async write({ name, tickMs, attempt }: OutputRun, output: AsyncIterable<Uint8Array>): Promise<void> {
    const folder = join(this.#folder, encodeLockName(name));
    const time = new Date(tickMs).toISOString().slice(0, 16).replaceAll(":", "");
    let [fd, failure]: [number | null, unknown] = [null, null];
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      fd = openSync(join(folder, `${time}Z-${attempt}.log`), "a", 0o600);
    } catch (thrown) {
      failure = thrown;
    }
    for await (const chunk of output) {
      if (fd === null || failure !== null) continue;
      try {
        writeWhole(fd, chunk);
      } catch (thrown) {
        failure = thrown;
      }
    }
    if (fd !== null) closeSync(fd);
    if (failure !== null) throw failure;
    // The names are times, so that the first ones are the oldest.
    const files = readdirSync(folder).filter((file) => file.endsWith(".log")).sort();
    for (const file of files.slice(0, Math.max(0, files.length - this.#filesMax))) unlinkSync(join(folder, file));
  }
}
