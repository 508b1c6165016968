/** Progress of a bulk transfer in one terminal line: number of messages, rate, percentage and remaining time. */
import type { Io } from "../src/terminal/io.ts";
import { WaitLine } from "../src/terminal/progress_line.ts";
import { countWithNoun } from "../src/support/text.ts";
import { formatDuration } from "../src/support/duration.ts";

const showEveryMs = 200;
/** The remaining time is shown after this time; an earlier rate is not reliable. */
const etaMsMin = 1000;

export interface BulkProgress {
  readonly messages: number;
  /** The participle of the work: stored, received. */
  readonly verb: string;
  /** Work done by this process and before it, in the unit of `total`: messages or bytes. */
  readonly done: number;
  readonly before: number;
  /** Null if the total is unknown. */
  readonly total: number | null;
  readonly elapsedMs: number;
}

/** Pure. */
export function progressText({ messages, verb, done, before, total, elapsedMs }: BulkProgress): string {
  const rate = Math.round(messages / Math.max(0.001, elapsedMs / 1000));
  const text = `${countWithNoun(messages, "message")} ${verb}, ${rate} a second`;
  if (total === null || total === 0) return text;
  const all = Math.min(total, before + done);
  const share = `, ${Math.floor(100 * all / total)} %`;
  if (elapsedMs < etaMsMin || done === 0) return text + share;
  return `${text}${share}, ${formatDuration(1000 * Math.ceil(elapsedMs * (total - all) / done / 1000))} left`;
}

/** The call of the command that shows the progress. */
interface ProgressCall {
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

  /** Whether a progress line can be shown. */
  static canShow({ io, values }: ProgressCall): boolean {
    return WaitLine.canShow(io) && !values.quiet;
  }

  /** Shows nothing if a line cannot be shown, or with `isWanted: false`. */
  constructor(call: ProgressCall, { verb, total, isWanted }: {
    readonly verb: string;
    readonly total: number | null;
    readonly isWanted: boolean;
  }) {
    this.#line = isWanted && BulkProgressLine.canShow(call) ? new WaitLine(call.io) : null;
    this.#verb = verb;
    this.#total = total;
  }

  addProgress(messages: number, done: number): void {
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

  /** Counts work that was done before this process. */
  addEarlierWork(done: number): void {
    this.#before += done;
  }

  [Symbol.dispose](): void {
    this.#line?.[Symbol.dispose]();
  }
}
