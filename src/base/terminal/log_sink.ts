/**
 * Prints the messages of a service and the output of its jobs on stderr. Each line of output stays whole. Lines of
 * output wait for the reader; messages do not.
 */
import { rejectOnAbort } from "../support/abort.ts";
import type { Clock } from "../support/clock.ts";
import { resultInTimeOrNull } from "../support/deadline.ts";
import { lostMessagesNotice } from "./drain_output.ts";
import type { Io } from "./io.ts";
import { outputPieceBytesMax } from "./output_writer.ts";

/** Prints messages and lines of output, each line whole. */
export interface LogSink {
  /** Writes a message immediately. If a line is being written, writes the message after that line. */
  err(text: string): void;
  /**
   * Writes the parts of a long line, or several short lines. Waits if writing would block or the process has other
   * work. Rejects with the signal's reason, but always finishes a line that it has begun.
   */
  write(parts: Iterable<string>, signal: AbortSignal): Promise<void>;
  /** The number of pieces written so far. The number grows while the reader takes the output. */
  readonly taken: number;
}

/** The most messages that may wait for the end of a line. */
const heldMax = 1000;

export class StderrLineSink implements LogSink {
  readonly #io: Pick<Io, "err" | "written">;
  /** Resolves when the earlier lines have been written. */
  #turn: Promise<void> = Promise.resolve();
  /** The messages that wait for the end of the line being written; null while no line is being written. */
  #held: string[] | null = null;
  #lost = 0;
  #taken = 0;

  constructor(io: Pick<Io, "err" | "written">) {
    this.#io = io;
  }

  get taken(): number {
    return this.#taken;
  }

  err(text: string): void {
    if (this.#held === null) this.#io.err(text);
    else if (this.#held.length < heldMax) this.#held.push(text);
    else this.#lost++;
  }

  async write(parts: Iterable<string>, signal: AbortSignal): Promise<void> {
    const writing = this.#turn.then(() => this.#write(parts, signal));
    this.#turn = writing.catch(() => {}); // the caller gets the rejection
    await rejectOnAbort(writing, signal);
  }

  async #write(parts: Iterable<string>, signal: AbortSignal): Promise<void> {
    try {
      for (const part of parts) {
        for (const piece of piecesOf(part)) {
          await this.#ready(this.#held === null ? signal : undefined);
          this.#taken++;
          this.#io.err(piece, "display"); // the writer of the line has removed control characters
          this.#held ??= [];
        }
      }
    } finally {
      const held = [...this.#held ?? [], ...(this.#lost > 0 ? [lostMessagesNotice(this.#lost)] : [])];
      this.#held = null;
      this.#lost = 0;
      for (const message of held) this.#io.err(message);
    }
  }

  async #ready(signal: AbortSignal | undefined): Promise<void> {
    await nextTurn();
    signal?.throwIfAborted();
    await this.#io.written("stderr", signal);
  }
}

/**
 * Resolves when the output of a dead command has been read. Also resolves when the reader has taken nothing for
 * `waitMs`.
 */
export async function readRestOfJobOutput(
  sink: Pick<LogSink, "taken">,
  reading: Promise<unknown>,
  { clock, waitMs }: { readonly clock: Clock; readonly waitMs: number },
): Promise<void> {
  const ended = reading.then(() => true);
  for (let taken = -1; taken !== sink.taken;) {
    taken = sink.taken;
    if (await resultInTimeOrNull(clock, waitMs, ended) === true) return;
  }
}

/** Matches a piece of a long text. A character has at most four bytes, and is never split. */
const piecePattern = new RegExp(`.{1,${outputPieceBytesMax / 4}}`, "gsu");

/** Splits a text into pieces that fit into one write. Nearly every text is a single piece. */
function piecesOf(text: string): readonly string[] {
  return Buffer.byteLength(text) <= outputPieceBytesMax ? [text] : text.match(piecePattern) ?? [];
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
