/**
 * Writes the job log of `baton pool --joblog`: a tab-separated line for each item, after its last try. GNU parallel can
 * read the format with --retry-failed.
 */
import { closeSync, fstatSync } from "node:fs";
import { hostname } from "node:os";
import { BatonError, systemCallErrorReason } from "../../base/errors.ts";
import { shellQuoteIfNeeded } from "../../base/support/shell_quote.ts";
import { openOutputFile } from "../../base/support/open_output.ts";
import { OutputChannel } from "../../base/terminal/io.ts";

const columns = ["Seq", "Host", "Starttime", "JobRuntime", "Send", "Receive", "Exitval", "Signal", "Command"];

export interface LoggedItemTry {
  /** The wall clock's time, in Unix milliseconds. */
  readonly startedMs: number;
  readonly tookMs: number;
  /** The exit code as a shell reports it: 128 + N if signal N ended the command. */
  readonly exitCode: number;
  /** The number of the signal; 0 if no signal ended the command. */
  readonly signal: number;
  readonly command: readonly string[];
}

export class PoolJobLog implements Disposable {
  readonly #file: string;
  readonly #fd: number;
  readonly #output: OutputChannel;
  readonly #host = hostname();
  /** The running items, with their numbers in the order of the starts and their last ended tries. */
  readonly #running = new Map<string, { readonly sequence: number; last: LoggedItemTry | null }>();
  #started = 0;

  /** `named` is a file to replace, or `+` and a file to append to. Throws CANNOT_CREATE. */
  constructor(named: string) {
    const appends = named.startsWith("+");
    this.#file = appends ? named.slice(1) : named;
    try {
      this.#fd = openOutputFile(this.#file, appends ? "append" : "replace");
      this.#output = new OutputChannel(this.#fd);
      if (!appends || fstatSync(this.#fd).size === 0) this.#output.write(`${columns.join("\t")}\n`);
    } catch (cause) {
      throw new BatonError("CANNOT_CREATE", `Cannot write --joblog ${this.#file}: ${systemCallErrorReason(cause)}`, {
        cause,
      });
    }
  }

  /** Waits for the reader of a pipe. Returns null if all lines were written, otherwise the reason why not. */
  async end(): Promise<string | null> {
    await this.#output.written();
    if (this.#output.failure === null) return null;
    return `Cannot write --joblog ${this.#file}: ${
      systemCallErrorReason(this.#output.failure)
    }; the results of some items are missing`;
  }

  /** Notes that an item starts, or starts again. */
  start(item: string): void {
    if (!this.#running.has(item)) this.#running.set(item, { sequence: ++this.#started, last: null });
  }

  /** Notes an ended try; `write` writes an item's last try. */
  endTry(item: string, last: LoggedItemTry): void {
    const running = this.#running.get(item);
    if (running !== undefined) running.last = last;
  }

  write(item: string): void {
    const { sequence = 0, last = null } = this.#running.get(item) ?? {};
    this.#running.delete(item);
    if (last === null || this.#output.failure !== null) return;
    try {
      this.#output.write(formatJobLogLine(sequence, this.#host, last));
    } catch {
      // `end` reports the failure
    }
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd);
  }
}

/** Formats a line of the log. Send and Receive are 0, because baton copies no files between machines. */
export function formatJobLogLine(sequence: number, host: string, last: LoggedItemTry): string {
  const { startedMs, tookMs, exitCode, signal, command } = last;
  const seconds = (ms: number) => (ms / 1000).toFixed(3);
  // GNU parallel writes a NUL for a line feed, and reads it back as a line feed.
  const written = command.map(shellQuoteIfNeeded).join(" ").replaceAll("\n", "\0");
  return `${
    [sequence, host, seconds(startedMs), seconds(tookMs).padStart(10), 0, 0, exitCode, signal, written].join("\t")
  }\n`;
}
