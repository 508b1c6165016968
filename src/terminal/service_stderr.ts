/**
 * The stderr of a service. A reader that has stopped reading may lose messages, but never blocks the service: its session would end, with
 * the locks, topics and sessions that it has.
 */
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

/** Where output is printed. */
export interface LogSink {
  err(text: string): void;
  /** Resolves when the next piece does not block, after other work of this process. Rejects with the signal's reason. */
  ready(signal: AbortSignal): Promise<void>;
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
      this.#io.err(`baton: ${countWithNoun(this.#lost, "message was", "messages were")} lost here: stderr was full\n`);
      this.#lost = 0;
    }
    for (const piece of piecesOf(text)) {
      if (!isWritable(this.#libc, this.#lost === 0 ? messageMsMax : 0)) return void this.#lost++;
      this.#io.err(piece);
    }
  }
}

/** The stderr of a service for text that can wait: `io` has that stderr. */
export function logSinkOf(
  io: Pick<Io, "err">,
  { libc, clock }: { readonly libc: PipeWatch; readonly clock: Clock },
): LogSink {
  return {
    err: (text) => io.err(text),
    async ready(signal) {
      await nextTurn();
      signal.throwIfAborted();
      while (!isWritable(libc, 0)) await sleep(clock, fullMs, signal);
    },
  };
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
