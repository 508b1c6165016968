/** Prints what a run of a pool does: progress on a terminal, a summary at the end, and the job log. */
import type { Io } from "../../base/terminal/io.ts";
import type { PoolItemEnd } from "./pool_run_options.ts";
import type { PoolItemCounts } from "./work_list.ts";
import type { Clock } from "../../base/support/clock.ts";
import { formatDuration } from "../../base/support/duration.ts";
import { printable } from "../../base/support/text.ts";
import { ProgressLine } from "../../base/terminal/progress.ts";
import type { PoolJobLog } from "./pool_job_log.ts";

/**
 * When progress appears, and how often it changes, in milliseconds. Changes are rare, because commands use the same
 * terminal.
 */
const progressMs = { after: 2000, every: 1000 };
/** The maximum number of failed items that the summary names. */
const namedMax = 3;

export interface PoolReportOptions {
  readonly component: string;
  /** Whether the run processes all items, not only as many as -j says. */
  readonly loop: boolean;
  readonly quiet: boolean;
  readonly verbose: boolean;
  readonly values: {
    /** Whether to show progress even if stderr is not a terminal. */
    readonly progress: boolean;
  };
}

export class PoolReport implements Disposable {
  /** The output of the call. It erases the progress line before each message. */
  readonly io: Io;
  readonly jobLog: PoolJobLog | null;
  readonly #options: PoolReportOptions;
  readonly #clock: Clock;
  readonly #startMs: number;
  readonly #progress: ProgressLine;
  readonly #failed: string[] = [];
  #counts: PoolItemCounts | null = null;
  #isSummarized = false;

  constructor(options: PoolReportOptions, io: Io, { clock, jobLog }: {
    readonly clock: Clock;
    readonly jobLog: PoolJobLog | null;
  }) {
    this.#options = options;
    this.#clock = clock;
    this.#startMs = clock.now();
    this.jobLog = jobLog;
    const { quiet, values: { progress } } = options;
    this.#progress = new ProgressLine({ io, values: { quiet, progress } }, {
      noun: "item",
      verb: "done",
      total: null,
      isWanted: options.loop || progress,
      clock,
      afterMs: progressMs.after,
      everyMs: progressMs.every,
      sharesTerminal: true,
    });
    const err: Io["err"] = (text, form) => {
      this.#progress.erase();
      io.err(text, form);
    };
    const out: Io["out"] = (content, stream) => {
      this.#progress.erase();
      io.out(content, stream);
    };
    // A copy would read the size of the terminal now.
    this.io = Object.create(io, { err: { value: err }, out: { value: out } }) as Io;
  }

  itemEnded({ item, result, counts, left }: Omit<PoolItemEnd, "end" | "tookMs">): void {
    this.jobLog?.write(item);
    if (result === "failed" && this.#failed.length < namedMax) this.#failed.push(item);
    this.#counts = counts;
    const note = counts.failed === 0 ? "" : `${counts.failed} failed`;
    this.#progress.set({ note, total: counts.done + counts.failed + left });
    this.#progress.add(1);
  }

  /**
   * Prints the summary once, by default with the counts after the last ended item. Prints nothing for a successful run
   * without `loop` and without a terminal, because cron may have called it.
   */
  summarize(counts = this.#counts): void {
    const { quiet, verbose, loop, component } = this.#options;
    if (counts === null || quiet || this.#isSummarized) return;
    this.#isSummarized = true;
    if (!loop && !verbose && counts.failed === 0 && !this.io.stderrIsTerminal) return;
    const elapsedMs = this.#clock.now() - this.#startMs;
    this.#progress[Symbol.dispose](); // its timer would show the line again, after the summary
    this.io.err(`baton: ${poolSummaryText(component, counts, { failed: this.#failed, elapsedMs })}\n`);
  }

  [Symbol.dispose](): void {
    this.#progress[Symbol.dispose]();
    this.jobLog?.[Symbol.dispose]();
  }
}

/** `failed` are the names of the first failed items. */
export function poolSummaryText(
  component: string,
  { done, failed: failures, skipped, busy, remaining }: PoolItemCounts,
  { failed, elapsedMs }: { readonly failed: readonly string[]; readonly elapsedMs: number },
): string {
  const names = failed.map((item) => printable(JSON.stringify(item))).join(", ");
  const more = failures > failed.length ? ", …" : "";
  const parts = [
    `${done} done`,
    failures === 0 ? "0 failed" : `${failures} failed (${names}${more})`,
    `${skipped} skipped`,
    ...(busy === 0 ? [] : [`${busy} with other calls`]),
    ...(remaining === 0 ? [] : [`${remaining} left`]),
  ];
  return `pool "${component}": ${parts.join(", ")}; ${formatDuration(elapsedMs)}`;
}
