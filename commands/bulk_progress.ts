/** Progress of bulk work in one terminal line: number of items, rate, percentage and remaining time. */
import type { Io } from "../src/terminal/io.ts";
import { WaitLine } from "../src/terminal/progress_line.ts";
import { countWithNoun } from "../src/support/text.ts";
import { formatDuration } from "../src/support/duration.ts";

const showEveryMs = 200;
/** The remaining time is shown after this time; an earlier rate is not reliable. */
const etaMsMin = 1000;

export interface BulkProgress {
  /** The number of items done by this process. */
  readonly count: number;
  /** The noun for one item: message. */
  readonly noun: string;
  /** The participle of the work: stored, received. */
  readonly verb: string;
  /** Work done by this process and before it, in the unit of `total`: items or bytes. */
  readonly done: number;
  readonly before: number;
  /** Null if the total is unknown. */
  readonly total: number | null;
  readonly elapsedMs: number;
}

/** Pure. */
export function progressText({ count, noun, verb, done, before, total, elapsedMs }: BulkProgress): string {
  const text = `${countWithNoun(count, noun)} ${verb}${rateText(count / Math.max(0.001, elapsedMs / 1000))}`;
  if (total === null || total === 0) return text;
  const all = Math.min(total, before + done);
  const share = `, ${Math.floor(100 * all / total)} %`;
  if (elapsedMs < etaMsMin || done === 0) return text + share;
  return `${text}${share}, ${formatDuration(1000 * Math.ceil(elapsedMs * (total - all) / done / 1000))} left`;
}

/** A rate that is too low for one item a second is shown by the minute or the hour. */
function rateText(perSecond: number): string {
  if (perSecond === 0) return "";
  const [rate, unit] = perSecond >= 1
    ? [perSecond, "a second"]
    : perSecond >= 1 / 60
    ? [60 * perSecond, "a minute"]
    : [3600 * perSecond, "an hour"];
  return `, ${rate < 10 ? Math.round(10 * rate) / 10 : Math.round(rate)} ${unit}`;
}

/** The call of the command that shows the progress. */
interface ProgressCall {
  readonly io: Io;
  readonly values: { readonly quiet: boolean };
}

export class BulkProgressLine implements Disposable {
  readonly #line: WaitLine | null;
  readonly #noun: string;
  readonly #afterMs: number;
  readonly #everyMs: number;
  readonly #startMs = performance.now();
  #shownMs = -Infinity;
  #count = 0;
  #done = 0;
  #before = 0;
  /** Both may change during the work. */
  verb: string;
  total: number | null;

  /** Whether a progress line can be shown. */
  static canShow({ io, values }: ProgressCall): boolean {
    return WaitLine.canShow(io) && !values.quiet;
  }

  /** Shows nothing if a line cannot be shown, or with `isWanted: false`. */
  constructor(call: ProgressCall, { noun = "message", verb, total, isWanted, afterMs = 0, everyMs = showEveryMs }: {
    readonly noun?: string;
    readonly verb: string;
    readonly total: number | null;
    readonly isWanted: boolean;
    /** Work that takes less time than this shows no line. */
    readonly afterMs?: number;
    /** The interval between two updates. */
    readonly everyMs?: number;
  }) {
    this.#line = isWanted && BulkProgressLine.canShow(call) ? new WaitLine(call.io) : null;
    this.#noun = noun;
    this.#afterMs = afterMs;
    this.#everyMs = everyMs;
    this.verb = verb;
    this.total = total;
  }

  addProgress(count: number, done: number): void {
    this.#count += count;
    this.#done += done;
    this.update();
  }

  /** Counts work that was done before this process. */
  addEarlierWork(done: number): void {
    this.#before += done;
  }

  /** Updates the line if its interval is over. */
  update(): void {
    const nowMs = performance.now();
    const elapsedMs = nowMs - this.#startMs;
    if (this.#line === null || elapsedMs < this.#afterMs || nowMs - this.#shownMs < this.#everyMs) return;
    this.#shownMs = nowMs;
    this.#line.show(progressText({
      ...{ count: this.#count, noun: this.#noun, verb: this.verb, done: this.#done, before: this.#before },
      total: this.total,
      elapsedMs,
    }));
  }

  /** Erases the line, for other output; the next update shows it again. */
  erase(): void {
    this.#line?.erase();
  }

  [Symbol.dispose](): void {
    this.#line?.[Symbol.dispose]();
  }
}
