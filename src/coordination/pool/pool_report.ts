/** Output of a run of a pool about its items: progress on a terminal, the summary at the end, the job log. */
import type { Io } from "../../base/terminal/io.ts";
import type { PoolItemEnd } from "./pool_run_options.ts";
import type { PoolCounts } from "./work_list.ts";
import type { Clock } from "../../base/support/clock.ts";
import { formatDuration } from "../../base/support/duration.ts";
import { printable } from "../../base/support/text.ts";
import { ProgressLine } from "../../base/terminal/progress.ts";
import type { PoolJobLog } from "./pool_job_log.ts";
import type { PoolItemSource } from "./pool_source.ts";

/** A shorter run shows no progress. Commands write to the same terminal: the line changes rarely. Milliseconds. */
const progressMs = { after: 2000, every: 1000 };
/** Two calls with the same list would both run the items that are free when they get to them. */
const sharedListHint = "baton: other calls run items of this list, too; with --done-ttl 1d each item runs once a day\n";
/** The maximum number of failed items in the summary. */
const namedMax = 3;

/** Options of a run that its report uses. */
export interface PoolReportOptions {
  readonly component: string;
  readonly items: Pick<PoolItemSource, "kind">;
  /** The run processes all items, and not only -j of them. */
  readonly loop: boolean;
  readonly quiet: boolean;
  readonly verbose: boolean;
  readonly values: {
    /** Show progress wherever stderr goes. */
    readonly progress: boolean;
    /** How long results are kept, in milliseconds. */
    readonly doneTtl?: number | undefined;
  };
}

export class PoolReport implements Disposable {
  /** Erases the progress before a message. */
  readonly io: Io;
  readonly jobLog: PoolJobLog | null;
  readonly #options: PoolReportOptions;
  readonly #clock: Clock;
  readonly #startMs: number;
  readonly #progress: ProgressLine;
  readonly #failed: string[] = [];
  #counts: PoolCounts | null = null;
  #isSummarized = false;
  #isShared = false;

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
    this.io = Object.create(io, { err: { value: err } }) as Io; // a copy would read the size of the terminal now
  }

  /** The last try of an item has ended. */
  itemEnded({ item, result, counts, left, isShared }: PoolItemEnd): void {
    this.jobLog?.write(item);
    if (result === "failed" && this.#failed.length < namedMax) this.#failed.push(item);
    this.#counts = counts;
    this.#isShared ||= isShared;
    const note = counts.failed === 0 ? "" : `${counts.failed} failed`;
    this.#progress.set({ note, total: counts.done + counts.failed + left });
    this.#progress.add(1);
  }

  /**
   * Prints the summary once, by default with the counts when the last item ended. A call of cron runs one round,
   * and prints nothing if all is well.
   */
  summarize(counts = this.#counts): void {
    const { quiet, verbose, loop, component, items, values } = this.#options;
    if (counts === null || quiet || this.#isSummarized) return;
    this.#isSummarized = true;
    if (!loop && !verbose && counts.failed === 0 && !this.io.stderrIsTerminal) return;
    const elapsedMs = this.#clock.now() - this.#startMs;
    this.io.err(`baton: ${poolSummaryText(component, counts, { failed: this.#failed, elapsedMs })}\n`);
    if (this.#isShared && items.kind !== "query" && values.doneTtl === undefined) this.io.err(sharedListHint);
  }

  [Symbol.dispose](): void {
    this.#progress[Symbol.dispose]();
    this.jobLog?.[Symbol.dispose]();
  }
}

/** Pure. `failed` are the names of the first failed items. */
export function poolSummaryText(
  component: string,
  { done, failed: failures, skipped, busy, remaining }: PoolCounts,
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
