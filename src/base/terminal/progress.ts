/**
 * Shows the progress of a long operation on stderr: amount, rate, percentage and remaining time. A terminal shows one
 * line, from one second after the start. With --progress, other outputs get a line from time to time.
 */
import { type SettingTable, toggleSetting } from "../config/setting.ts";
import { type Clock, systemClock } from "../support/clock.ts";
import type { Io } from "./io.ts";
import { ErasableLine } from "./progress_line.ts";
import { type ProgressFacts, progressText, showProgressAfterMs, updateProgressEveryMs } from "./progress_text.ts";

/** Settings of every command that shows progress. */
export const progressSettings = {
  progress: toggleSetting("--progress", {
    help: "print progress on stderr also where it is no terminal: a line every 10 s, and one at the end",
    group: "output",
  }),
} satisfies SettingTable;

/** The call of the command that shows the progress. */
export interface ProgressCall {
  readonly io: Io;
  readonly values: { readonly quiet: boolean; readonly progress: boolean };
}

/** Decides how to show progress: on a line of a terminal, as lines, or not at all (null). */
export function chooseProgressForm({ io, values }: ProgressCall): "terminal" | "lines" | null {
  if (values.quiet) return null;
  if (ErasableLine.canShow(io)) return "terminal";
  return values.progress ? "lines" : null;
}

export interface ProgressOptions extends Pick<ProgressFacts, "noun" | "verb" | "total"> {
  /** False if `total` is in bytes although messages are counted; true by default. */
  readonly countsTotal?: boolean;
  /** False to show nothing; true by default. */
  readonly isWanted?: boolean;
  /** The time in milliseconds from the start to the first line on a terminal. */
  readonly afterMs?: number;
  /** The least time between two updates on a terminal, in milliseconds. */
  readonly everyMs?: number;
  /** The work itself writes to the terminal: blanks separate its output from the line. */
  readonly sharesTerminal?: boolean;
  readonly clock?: Clock;
}

/** Progress of work that lets the event loop run. Use ThreadProgress for work that blocks it. */
export class ProgressLine implements Disposable {
  readonly #io: Io;
  readonly #form: ReturnType<typeof chooseProgressForm>;
  readonly #line: ErasableLine;
  readonly #clock: Clock;
  readonly #startMs: number;
  readonly #afterMs: number;
  readonly #everyMs: number;
  readonly #lineEnd: string;
  #facts: Omit<ProgressFacts, "elapsedMs">;
  #shownMs: number;
  #cancelTimer = () => {};

  constructor(
    call: ProgressCall,
    { noun, verb, total, countsTotal = true, isWanted = true, clock = systemClock(), ...rest }: ProgressOptions,
  ) {
    this.#io = call.io;
    this.#form = isWanted ? chooseProgressForm(call) : null;
    this.#line = new ErasableLine(call.io);
    this.#afterMs = rest.afterMs ?? showProgressAfterMs;
    this.#everyMs = rest.everyMs ?? updateProgressEveryMs.terminal;
    this.#lineEnd = rest.sharesTerminal === true ? "  " : "";
    this.#clock = clock;
    this.#startMs = clock.now();
    this.#shownMs = this.#startMs;
    this.#facts = { noun, verb, count: 0, done: 0, before: 0, total, countsTotal, note: "" };
    if (this.#form !== null) this.#startTimer();
  }

  /** Counts finished work; `done` is in the unit of the total. */
  add(count: number, done: number = count): void {
    this.#facts = { ...this.#facts, count: this.#facts.count + count, done: this.#facts.done + done };
    this.#update();
  }

  /** Counts work that was done before this process. */
  addEarlierWork(done: number): void {
    this.#facts = { ...this.#facts, before: this.#facts.before + done };
  }

  /** Updates the total or the note. */
  set(facts: Partial<Pick<ProgressFacts, "total" | "note">>): void {
    this.#facts = { ...this.#facts, ...facts };
  }

  /** Erases the line, for other output; the next update shows it again. */
  erase(): void {
    this.#line.erase();
  }

  [Symbol.dispose](): void {
    this.#cancelTimer();
    this.#line.erase();
    if (this.#form === "lines") this.#io.err(`baton: ${this.#text()}\n`);
  }

  /** Updates the time shown, even while the work reports nothing. */
  #startTimer(): void {
    this.#cancelTimer = this.#clock.startTimer(updateProgressEveryMs.idle, () => {
      this.#update();
      this.#startTimer();
    });
  }

  #update(): void {
    const nowMs = this.#clock.now();
    if (this.#form === null || nowMs < this.#startMs + this.#afterMs) return;
    if (nowMs - this.#shownMs < (this.#form === "lines" ? updateProgressEveryMs.lines : this.#everyMs)) return;
    this.#shownMs = nowMs;
    if (this.#form === "terminal") this.#line.show(this.#text() + this.#lineEnd);
    else this.#io.err(`baton: ${this.#text()}\n`);
  }

  #text(): string {
    return progressText({ ...this.#facts, elapsedMs: this.#clock.now() - this.#startMs });
  }
}
