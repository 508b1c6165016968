/** How far many messages are: how many, how fast, and how long it will still take; one line, on a terminal only. */
import type { Io } from "../src/terminal/io.ts";
import { WaitLine } from "../src/terminal/progress_line.ts";
import { counted } from "../src/support/text.ts";
import { formatDuration } from "../src/support/duration.ts";

const showEveryMs = 200;
/** Before that a rate says little. */
const etaMsMin = 1000;

export interface BulkProgress {
  readonly messages: number;
  /** What was done with them: stored, received. */
  readonly verb: string;
  /** In whatever the total is counted in, messages or bytes; what was there before this process is `before`. */
  readonly done: number;
  readonly before: number;
  /** Null: nobody knows. */
  readonly total: number | null;
  readonly elapsedMs: number;
}

/** Pure. */
export function progressText({ messages, verb, done, before, total, elapsedMs }: BulkProgress): string {
  const rate = Math.round(messages / Math.max(0.001, elapsedMs / 1000));
  const text = `${counted(messages, "message")} ${verb}, ${rate} a second`;
  if (total === null || total === 0) return text;
  const all = Math.min(total, before + done);
  const share = `, ${Math.floor(100 * all / total)} %`;
  if (elapsedMs < etaMsMin || done === 0) return text + share;
  return `${text}${share}, ${formatDuration(1000 * Math.ceil(elapsedMs * (total - all) / done / 1000))} left`;
}

/** Of the command that it is shown for. */
interface ShowingCall {
  readonly io: Io;
  readonly values: { readonly quiet: boolean };
}

export class BulkProgressLine implements Disposable {
  readonly #line: WaitLine | null;
  readonly #verb: string;
  readonly #total: number | null;
  readonly #startMs = performance.now();
  #shownMs = -Infinity;
  #messages = 0;
  #done = 0;
  #before = 0;

  /** Whether a line can be shown at all. */
  static fits({ io, values }: ShowingCall): boolean {
    return WaitLine.fits(io) && !values.quiet;
  }

  /** Shows nothing where it does not fit, or is not wanted. */
  constructor(call: ShowingCall, { verb, total, isWanted }: {
    readonly verb: string;
    readonly total: number | null;
    readonly isWanted: boolean;
  }) {
    this.#line = isWanted && BulkProgressLine.fits(call) ? new WaitLine(call.io) : null;
    this.#verb = verb;
    this.#total = total;
  }

  more(messages: number, done: number): void {
    this.#messages += messages;
    this.#done += done;
    const nowMs = performance.now();
    if (this.#line === null || nowMs - this.#shownMs < showEveryMs) return;
    this.#shownMs = nowMs;
    this.#line.show(progressText({
      ...{ messages: this.#messages, verb: this.#verb, done: this.#done, before: this.#before, total: this.#total },
      elapsedMs: nowMs - this.#startMs,
    }));
  }

  /** What was done before this process. */
  skipped(done: number): void {
    this.#before += done;
  }

  [Symbol.dispose](): void {
    this.#line?.[Symbol.dispose]();
  }
}
