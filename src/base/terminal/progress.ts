/**
 * Shows the progress of a long operation on stderr: amount, rate, percentage and remaining time. A terminal shows one
 * line, which appears a second after the start. With --progress, other outputs get a line from time to time.
 */
import { type SettingTable, toggleSetting } from "../config/setting.ts";
import { type Clock, systemClock } from "../support/clock.ts";
import { formatDuration } from "../support/duration.ts";
import { countWithNoun } from "../support/text.ts";
import type { WorkProgress, WorkProgressPart } from "../support/work_progress.ts";
import type { Io } from "./io.ts";
import { ErasableTerminalLine } from "./progress_line.ts";

/** How long an operation runs before a terminal shows its progress. All times here are in milliseconds. */
const showAfterMs = 1000;
/**
 * The time between two updates, in milliseconds: on a terminal, on a terminal while the work reports nothing, and on
 * other outputs.
 */
const updateEveryMs = { terminal: 200, idle: 1000, lines: 10_000 };
/**
 * How long an operation runs before the remaining time is shown, in milliseconds. A rate measured earlier is not
 * reliable.
 */
const etaMsMin = 1000;

export const progressSettings = {
  progress: toggleSetting("--progress", {
    help: "print progress on stderr even if it is not a terminal: a line every 10 s, and one at the end",
    group: "output",
  }),
} satisfies SettingTable;

/** The call of the command that shows progress. */
export interface ProgressCall {
  readonly io: Io;
  readonly values: { readonly quiet: boolean; readonly progress: boolean };
}

/** Decides how to show progress: on a line of a terminal, as separate lines, or not at all (null). */
export function chooseProgressForm({ io, values }: ProgressCall): "terminal" | "lines" | null {
  if (values.quiet) return null;
  if (ErasableTerminalLine.canShow(io)) return "terminal";
  return values.progress ? "lines" : null;
}

export interface ProgressOptions extends Pick<ProgressFacts, "noun" | "verb" | "total"> {
  /**
   * True if `total` counts the same things as the progress (the default); false if `total` is in bytes and the progress
   * counts messages.
   */
  readonly countsTotal?: boolean;
  readonly isWanted?: boolean;
  /** How long the work runs before a terminal shows its progress, in milliseconds. */
  readonly afterMs?: number;
  readonly everyMs?: number;
  /**
   * True if the work itself writes to the terminal. Spaces then separate the output of the work from the line of
   * progress.
   */
  readonly sharesTerminal?: boolean;
  readonly clock?: Clock;
}

/**
 * Shows the progress of work that lets the event loop run. Use BlockingWorkProgress for work that blocks the event
 * loop.
 */
export class ProgressLine implements Disposable {
  readonly #io: Io;
  readonly #form: ReturnType<typeof chooseProgressForm>;
  readonly #line: ErasableTerminalLine;
  readonly #clock: Clock;
  readonly #startMs: number;
  readonly #afterMs: number;
  readonly #everyMs: number;
  readonly #lineEnd: string;
  #facts: Omit<ProgressFacts, "elapsedMs">;
  #shownMs: number;
  #isEnded = false;
  #cancelTimer = () => {};

  constructor(
    call: ProgressCall,
    { noun, verb, total, countsTotal = true, isWanted = true, clock = systemClock(), ...rest }: ProgressOptions,
  ) {
    this.#io = call.io;
    this.#form = isWanted ? chooseProgressForm(call) : null;
    this.#line = new ErasableTerminalLine(call.io);
    this.#afterMs = rest.afterMs ?? showAfterMs;
    this.#everyMs = rest.everyMs ?? updateEveryMs.terminal;
    this.#lineEnd = rest.sharesTerminal === true ? "  " : "";
    this.#clock = clock;
    this.#startMs = clock.now();
    this.#shownMs = this.#startMs;
    this.#facts = { noun, verb, count: 0, done: 0, before: 0, total, countsTotal, note: "" };
    if (this.#form !== null) this.#startTimer();
  }

  /** Counts finished work. `done` is the amount of the same work in the unit of the total. */
  add(count: number, done: number = count): void {
    this.#facts = { ...this.#facts, count: this.#facts.count + count, done: this.#facts.done + done };
    this.#update();
  }

  /** Counts work that was done before this process started. */
  addEarlierWork(done: number): void {
    this.#facts = { ...this.#facts, before: this.#facts.before + done };
  }

  set(facts: Partial<Pick<ProgressFacts, "total" | "note">>): void {
    this.#facts = { ...this.#facts, ...facts };
  }

  /**
   * Shows the current progress on a terminal. On another output, prints a line only if nothing can be counted;
   * otherwise the last line has the count.
   */
  show(): void {
    if (this.#form === "terminal") this.#line.show(this.#text() + this.#lineEnd);
    if (this.#form === "lines" && this.#facts.noun === null) this.#io.err(`baton: ${this.#text()}\n`);
  }

  /** Erases the line, so that the caller can print other output. The next update shows the line again. */
  erase(): void {
    this.#line.erase();
  }

  /** Ends the display. Later calls of this and other methods show nothing. */
  [Symbol.dispose](): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#cancelTimer();
    this.#line.erase();
    if (this.#form === "lines" && this.#facts.noun !== null) this.#io.err(`baton: ${this.#text()}\n`);
  }

  /** Starts the timer that updates the displayed time, even while the work reports nothing. */
  #startTimer(): void {
    this.#cancelTimer = this.#clock.startTimer(updateEveryMs.idle, () => {
      this.#update();
      this.#startTimer();
    });
  }

  #update(): void {
    const nowMs = this.#clock.now();
    if (this.#form === null || this.#isEnded || nowMs < this.#startMs + this.#afterMs) return;
    if (nowMs - this.#shownMs < (this.#form === "lines" ? updateEveryMs.lines : this.#everyMs)) return;
    this.#shownMs = nowMs;
    if (this.#form === "terminal") this.#line.show(this.#text() + this.#lineEnd);
    else this.#io.err(`baton: ${this.#text()}\n`);
  }

  #text(): string {
    return progressText({ ...this.#facts, elapsedMs: this.#clock.now() - this.#startMs });
  }
}

/**
 * Shows the progress of work that blocks the event loop, such as one long SQL statement. Shows each part when it
 * begins, and then its count.
 */
export class BlockingWorkProgress implements WorkProgress, Disposable {
  readonly #call: ProgressCall;
  readonly #clock: Clock;
  #line: ProgressLine | null = null;

  constructor(call: ProgressCall, clock: Clock = systemClock()) {
    this.#call = call;
    this.#clock = clock;
  }

  startPart(part: WorkProgressPart): void {
    this[Symbol.dispose]();
    this.#line = new ProgressLine(this.#call, { ...part, afterMs: 0, everyMs: 1000, clock: this.#clock });
    this.#line.show();
  }

  add(count: number): void {
    this.#line?.add(count);
  }

  [Symbol.dispose](): void {
    this.#line?.[Symbol.dispose]();
    this.#line = null;
  }
}

export interface ProgressFacts {
  /** The singular noun of what is counted; null if nothing can be counted. */
  readonly noun: string | null;
  /** The participle of the work, such as `stored`. If there is no noun, what is being done. */
  readonly verb: string;
  readonly count: number;
  /** The work of this process (`done`) and the work before it (`before`), in the unit of `total`. */
  readonly done: number;
  readonly before: number;
  readonly total: number | null;
  /** True if the total counts the same things as `count`; false if it is a number of bytes. */
  readonly countsTotal: boolean;
  readonly elapsedMs: number;
  /** A remark about the work, such as `1 failed`; empty if there is none. */
  readonly note: string;
}

/** Returns the text that shows the progress. Pure. */
export function progressText(facts: ProgressFacts): string {
  const { noun, verb, count, done, before, total, elapsedMs, note } = facts;
  const notes = note === "" ? [] : [note];
  const time = elapsedMs < 1000 ? [] : [formatDuration(1000 * Math.floor(elapsedMs / 1000))];
  if (noun === null) return [verb, ...notes, ...time].join(", ");
  const speed = count > 0 ? [rateText(count, elapsedMs)] : time;
  const parts = [`${amountText(noun, facts)} ${verb}`, ...notes, ...speed];
  if (total === null || total === 0) return parts.join(", ");
  const all = Math.min(total, before + done);
  parts.push(`${Math.floor(100 * all / total)} %`);
  if (elapsedMs >= etaMsMin && done > 0 && all < total) {
    parts.push(`${formatDuration(1000 * Math.ceil(elapsedMs * (total - all) / done / 1000))} left`);
  }
  return parts.join(", ");
}

function amountText(noun: string, { count, before, total, countsTotal }: ProgressFacts): string {
  if (!countsTotal || total === null) return countWithNoun(count, noun);
  return `${Math.min(total, before + count)} of ${countWithNoun(total, noun)}`;
}

/** Returns the rate per second. If that is below one, returns the rate per minute or hour. */
function rateText(count: number, elapsedMs: number): string {
  const perSecond = count / Math.max(0.001, elapsedMs / 1000);
  const [rate, unit] = perSecond >= 1
    ? [perSecond, "a second"]
    : perSecond >= 1 / 60
    ? [60 * perSecond, "a minute"]
    : [3600 * perSecond, "an hour"];
  return `${rate < 10 ? Math.round(10 * rate) / 10 : Math.round(rate)} ${unit}`;
}
