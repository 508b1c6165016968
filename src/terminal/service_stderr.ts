/**
 * The stderr of a service. A reader that has stopped reading may lose messages, but never blocks the service: its session would end, with
 * the locks, topics and sessions that it has.
 */
import { abortable } from "../support/abort.ts";
import type { Clock } from "../support/clock.ts";
import { sleep } from "../support/deadline.ts";
import { countWithNoun } from "../support/text.ts";
import type { Io } from "./io.ts";

/** Writes at most this much together, in bytes: a pipe or a socket that accepts anything accepts it without blocking (PIPE_BUF of Linux). */
export const pieceBytesMax = 4096;
/** How long a message may wait for a reader that has stopped reading, in milliseconds. Further ones do not wait until it reads again. */
const messageMsMax = 100;
/** Time between two looks at a full stderr, in milliseconds. */
const fullMs = 20;

/** Where messages and lines of output are printed, each line whole. */
export interface LogSink {
  /** Writes a message: immediately, or after the line that is on its way. */
  err(text: string): void;
  /**
   * Writes a line of any length, or several short ones, given in parts, as soon as that does not block, and after other work of this
   * process. Rejects with the signal's reason; a line that has begun is written to its end.
   */
  write(parts: Iterable<string>, signal: AbortSignal): Promise<void>;
}

/** The part of `Libc` that waits until a descriptor accepts a piece. Null: output blocks. */
type PipeWatch = { waitWritable(fd: number, timeoutMs: number): boolean } | null;

export class ServiceStderr {
  readonly #io: Pick<Io, "err">;
  readonly #libc: PipeWatch;
  /** Messages that were lost since the last one. */
  #lost = 0;

  constructor(io: Pick<Io, "err">, libc: PipeWatch) {
    this.#io = io;
    this.#libc = libc;
  }

  err(text: string): void {
    if (this.#lost > 0 && isWritable(this.#libc, 0)) {
      this.#io.err(lostSentence(this.#lost));
      this.#lost = 0;
    }
    for (const piece of piecesOf(text)) {
      if (!isWritable(this.#libc, this.#lost === 0 ? messageMsMax : 0)) return void this.#lost++;
      this.#io.err(piece);
    }
  }
}

/** Maximum number of messages that wait for the end of a line. */
const heldMax = 1000;

/** The stderr of a service for lines that can wait: `io` has that stderr. */
export class LineSink implements LogSink {
  readonly #io: Pick<Io, "err">;
  readonly #libc: PipeWatch;
  readonly #clock: Clock;
  /** Resolves when the lines before have been written. */
  #turn: Promise<void> = Promise.resolve();
  /** Messages that wait for the end of the line that is on its way; null: none is. */
  #held: string[] | null = null;
  #lost = 0;

  constructor(io: Pick<Io, "err">, { libc, clock }: { readonly libc: PipeWatch; readonly clock: Clock }) {
    this.#io = io;
    this.#libc = libc;
    this.#clock = clock;
  }

  err(text: string): void {
    if (this.#held === null) this.#io.err(text);
    else if (this.#held.length < heldMax) this.#held.push(text);
    else this.#lost++;
  }

  async write(parts: Iterable<string>, signal: AbortSignal): Promise<void> {
    const writing = this.#turn.then(() => this.#write(parts, signal));
    this.#turn = writing.catch(() => {}); // the caller has the reason
    await abortable(writing, signal);
  }

  async #write(parts: Iterable<string>, signal: AbortSignal): Promise<void> {
    try {
      for (const part of parts) {
        for (const piece of piecesOf(part)) {
          await this.#ready(this.#held === null ? signal : undefined);
          this.#io.err(piece);
          this.#held ??= [];
        }
      }
    } finally {
      const held = [...this.#held ?? [], ...(this.#lost > 0 ? [lostSentence(this.#lost)] : [])];
      [this.#held, this.#lost] = [null, 0];
      for (const message of held) this.#io.err(message);
    }
  }

  async #ready(signal: AbortSignal | undefined): Promise<void> {
    await nextTurn();
    signal?.throwIfAborted();
    while (!isWritable(this.#libc, 0)) await sleep(this.#clock, fullMs, signal);
  }
}

function lostSentence(count: number): string {
  return `baton: ${countWithNoun(count, "message was", "messages were")} lost here: stderr was full\n`;
}

function isWritable(libc: PipeWatch, timeoutMs: number): boolean {
  return libc === null || libc.waitWritable(2, timeoutMs);
}

/** Nearly every text is one piece. A UTF-16 unit has three bytes at most. */
function piecesOf(text: string): string[] {
  if (Buffer.byteLength(text) <= pieceBytesMax) return [text];
  const size = Math.floor(pieceBytesMax / 3);
  return Array.from(
    { length: Math.ceil(text.length / size) },
    (_, index) => text.slice(index * size, (index + 1) * size),
  );
}

/** Resolves after what the event loop has to do now. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}
