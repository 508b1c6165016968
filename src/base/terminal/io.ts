/** The output, the environment and the terminal of this process. Tests replace this interface. */
import { BatonError, errnoName, errorMessage } from "../errors.ts";
import { rejectOnAbort } from "../support/abort.ts";
import { inheritedDescriptors } from "../process/spawn/inherited_descriptors.ts";
import { isTerminal, type NonBlockingWrite, openOutputWriter, outputBurstPiecesMax } from "./output_writer.ts";

export type OutputStream = "stdout" | "stderr";

export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdinIsTerminal: boolean;
  readonly stdoutIsTerminal: boolean;
  readonly stderrIsTerminal: boolean;
  readonly inheritedFds: readonly number[];
  /** The width of the terminal in columns; 80 if there is no terminal. */
  readonly columns: number;
  /**
   * Writes results to stdout without blocking. Text that the reader does not take now waits in memory, so a command
   * that prints without end must await `written`. Throws IO if a write has failed, and `StdoutReaderGone` if the reader
   * has closed the pipe. With "stderr", writes the output of a command there, as it is. Unlike messages, it waits for
   * the reader.
   */
  out(content: string | Uint8Array, stream?: OutputStream): void;
  /**
   * Writes a message to stderr without blocking. Replaces control characters, because a message may quote other users.
   * A `display` is this program's own text, with colors or cursor moves, and is not changed. If too many messages wait,
   * further messages are counted and lost. A closed stderr does not stop a command.
   */
  err(text: string, form?: "message" | "display"): void;
  /**
   * Shows a text that the next frame replaces, such as progress. Returns false if the text was skipped because earlier
   * text still waits for the reader.
   */
  frame(stream: OutputStream, text: string): boolean;
  /**
   * Resolves when no text waits for the reader. Rejects with the signal's reason, or for stdout with an error of `out`.
   */
  written(stream: OutputStream, signal?: AbortSignal): Promise<void>;
  /** Discards the results that wait for the reader of stdout. Also discards a write error; the caller reports it. */
  drop(): void;
}

/** The output of this process. Only the main program, which ends the process, has this interface. */
export interface ProcessIo extends Io {
  end(): Promise<void>;
}

/**
 * Thrown if the reader of stdout has closed the pipe, as in `baton ls | head -1`. The process then ends by SIGPIPE,
 * like other programs.
 */
export class StdoutReaderGone extends Error {
  override readonly name = "StdoutReaderGone";
}

/**
 * An output that never blocks this process. If writing blocked, a reader that has stopped (^S on a terminal) would make
 * the process lose its sessions. This class does not change the mode of the open file, because other processes share
 * that file.
 */
export class OutputChannel {
  readonly fd: number;
  /** Output that the reader has not taken yet, in order. */
  readonly waiting: Uint8Array[] = [];
  lost = 0;
  failure: unknown = null;
  /** The function that writes. Undefined before the first write; null if drain_output.ts must choose it. */
  writeNow: NonBlockingWrite | null | undefined;
  #draining: Promise<void> | null = null;

  constructor(fd: number) {
    this.fd = fd;
  }

  /**
   * Writes `content`, which must not change later. If `waitingMax` messages already wait, discards the content and
   * counts it as lost. Throws the system error of this write or an earlier one.
   */
  write(content: string | Uint8Array, waitingMax = Infinity): void {
    if (this.failure !== null) throw this.failure;
    let rest: Uint8Array = typeof content === "string" ? Buffer.from(content) : content;
    if (this.waiting.length === 0) rest = this.#writeBurst(rest);
    else if (this.lost > 0 || this.waiting.length >= waitingMax) return void this.lost++;
    if (rest.length === 0) return;
    this.waiting.push(rest);
    this.#draining ??= this.#drain();
  }

  /** Resolves when nothing waits for the reader. Rejects with the signal's reason. */
  async written(signal?: AbortSignal): Promise<void> {
    while (this.#draining !== null) await rejectOnAbort(this.#draining, signal);
  }

  /** Writes as much as the output takes now. Returns the rest. */
  #writeBurst(rest: Uint8Array): Uint8Array {
    try {
      if (this.writeNow === undefined) this.writeNow = openOutputWriter(this.fd);
      for (let pieces = 0; pieces < outputBurstPiecesMax && rest.length > 0; pieces++) {
        const taken = this.writeNow?.(rest) ?? 0;
        if (taken === 0) break;
        rest = rest.subarray(taken);
      }
      return rest;
    } catch (thrown) {
      this.failure = thrown;
      throw thrown;
    }
  }

  async #drain(): Promise<void> {
    try {
      const { drainOutput } = await import("./drain_output.ts");
      while (this.waiting.length > 0) await drainOutput(this);
    } catch (thrown) {
      this.failure = thrown;
      this.waiting.length = 0;
    }
    this.#draining = null;
  }
}

/** The most messages that may wait for the reader of stderr. Further messages are lost. */
const messagesMax = 500;
/** How long the end of the process waits for the readers, in milliseconds. */
const endMsMax = 2000;

/**
 * Returns the Io of this process. Must be called before any file is opened, because all open descriptors count as
 * inherited.
 */
export function systemIo(): ProcessIo {
  const outputs = { stdout: new OutputChannel(1), stderr: new OutputChannel(2) };
  const { stdout, stderr } = outputs;
  const io: ProcessIo = {
    env: process.env,
    inheritedFds: inheritedDescriptors(),
    stdinIsTerminal: isTerminal(0),
    get stdoutIsTerminal() {
      return isTerminal(1); // few commands need it
    },
    stderrIsTerminal: isTerminal(2),
    get columns() {
      return isTerminal(2) && process.stderr.columns || 80; // 0 if the terminal has no size
    },
    out: (content, stream = "stdout") => {
      try {
        outputs[stream].write(content);
      } catch (thrown) {
        throw stdoutError(thrown);
      }
    },
    err: (text, form = "message") => {
      try {
        stderr.write(form === "display" ? text : printableLines(text), messagesMax);
      } catch {
        // Forgets the error: there is no other place for the message, and the disk may have space for the next message.
        stderr.failure = null;
      }
    },
    frame: (stream, text) => {
      const isFree = outputs[stream].waiting.length === 0;
      if (isFree) stream === "stdout" ? io.out(text) : io.err(text, "display");
      return isFree;
    },
    written: async (stream, signal) => {
      await outputs[stream].written(signal);
      if (stdout.failure !== null && stream === "stdout") throw stdoutError(stdout.failure);
    },
    drop: () => {
      stdout.waiting.length = 0;
      stdout.failure = null;
    },
    end: async () => {
      const limit = AbortSignal.timeout(endMsMax);
      await Promise.allSettled([stdout.written(limit), stderr.written(limit)]);
    },
  };
  return io;
}

function stdoutError(thrown: unknown): Error {
  if (errnoName(thrown) === "EPIPE") return new StdoutReaderGone(errorMessage(thrown));
  return new BatonError("IO", `Cannot write to stdout: ${errorMessage(thrown)}`, { cause: thrown });
}

/** Returns a function that prints a sentence on stderr, even with options such as --quiet. */
export function stderrSentencePrinter({ err }: Pick<Io, "err">): (sentence: string) => void {
  return (sentence) => err(`baton: ${sentence}\n`);
}

export function printJson<T>(io: Io, value: T): void {
  io.out(JSON.stringify(value) + "\n");
}

export const printableLines = (text: string): string =>
  text.replace(/(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "\u{fffd}");
