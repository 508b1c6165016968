/**
 * The text of a progress line, and when to show it. The display thread uses it too, so this module imports no settings:
 * `lock` loads each part that it shares with the thread from a separate file.
 */
import { formatDuration } from "../support/duration.ts";
import { countWithNoun } from "../support/text.ts";

/** The time from the start of an operation to its first line on a terminal. All times here are in milliseconds. */
export const showProgressAfterMs = 1000;
/** The times between two updates: on a terminal, on a terminal while the work reports nothing, and on other outputs. */
export const updateProgressEveryMs = { terminal: 200, idle: 1000, lines: 10_000 };
/** The time after which the remaining time is shown; an earlier rate is not reliable. */
const etaMsMin = 1000;

export interface ProgressFacts {
  /** The noun of what is counted, in the singular; `byte` is shown as a size. Null if nothing can be counted. */
  readonly noun: string | null;
  /** The participle of the work: `stored`. Without a noun, what is being done. */
  readonly verb: string;
  readonly count: number;
  /** Work done by this process and before it, in the unit of `total`. */
  readonly done: number;
  readonly before: number;
  /** Null if the total is unknown. */
  readonly total: number | null;
  /** The total is the number of what is counted; otherwise it is a number of bytes. */
  readonly countsTotal: boolean;
  readonly elapsedMs: number;
  /** More about the work: `1 failed`; empty if there is nothing. */
  readonly note: string;
}

/** Pure. */
export function progressText(facts: ProgressFacts): string {
  const { noun, verb, count, done, before, total, elapsedMs, note } = facts;
  const notes = note === "" ? [] : [note];
  if (noun === null) return [verb, ...notes, formatDuration(1000 * Math.floor(elapsedMs / 1000))].join(", ");
  const parts = [`${amountText(noun, facts)} ${verb}`, ...notes];
  parts.push(count > 0 ? rateText(noun, count, elapsedMs) : formatDuration(1000 * Math.floor(elapsedMs / 1000)));
  if (total === null || total === 0) return parts.join(", ");
  const all = Math.min(total, before + done);
  parts.push(`${Math.floor(100 * all / total)} %`);
  if (elapsedMs >= etaMsMin && done > 0 && all < total) {
    parts.push(`${formatDuration(1000 * Math.ceil(elapsedMs * (total - all) / done / 1000))} left`);
  }
  return parts.join(", ");
}

function amountText(noun: string, { count, before, total, countsTotal }: ProgressFacts): string {
  if (noun === "byte") return total === null ? formatSize(count) : `${formatSize(count)} of ${formatSize(total)}`;
  if (!countsTotal || total === null) return countWithNoun(count, noun);
  return `${Math.min(total, before + count)} of ${countWithNoun(total, noun)}`;
}

/** Returns the rate per second, or per minute or hour if it is below one. */
function rateText(noun: string, count: number, elapsedMs: number): string {
  const perSecond = count / Math.max(0.001, elapsedMs / 1000);
  if (noun === "byte") return `${formatSize(perSecond)} a second`;
  const [rate, unit] = perSecond >= 1
    ? [perSecond, "a second"]
    : perSecond >= 1 / 60
    ? [60 * perSecond, "a minute"]
    : [3600 * perSecond, "an hour"];
  return `${rate < 10 ? Math.round(10 * rate) / 10 : Math.round(rate)} ${unit}`;
}

const sizeUnits = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/** Formats a number of bytes with at most three digits: `512 B`, `1.5 KiB`, `12 GiB`. */
function formatSize(bytes: number): string {
  let size = bytes;
  let unit = 0;
  for (; size >= 1023.5 && unit < sizeUnits.length - 1; unit++) size /= 1024;
  return `${unit === 0 || size >= 99.95 ? Math.round(size) : Math.round(size * 10) / 10} ${sizeUnits[unit]}`;
}
