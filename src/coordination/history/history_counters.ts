/** Counters of a history. They are written together with its records, and stay when records are deleted. Pure. */
import { isJsonObject, type JsonFields } from "../../base/support/json_fields.ts";
import { type HistoryRecord, type HistoryResult, historyResults } from "./history_record.ts";

/** The upper bounds of the buckets, in milliseconds. One more bucket counts longer times. */
export const durationBucketBoundsMs = [
  10,
  100,
  1000,
  10_000,
  60_000,
  300_000,
  1_800_000,
  7_200_000,
  21_600_000,
] as const;

export interface DurationBuckets {
  readonly sumMs: number;
  /** The number of durations in each bucket, not cumulative. There is one more bucket than bounds. */
  readonly buckets: readonly number[];
}

export interface HistoryCounters {
  /** The numbers of ended holds and ticks, by result. Each tick of a range of missed ticks is counted. */
  readonly results: Readonly<Record<HistoryResult, number>>;
  /** How long calls waited for their grant. Only grants whose end is recorded count. */
  readonly waited: DurationBuckets;
  readonly held: DurationBuckets;
  /** The times from a tick to the start of its command. */
  readonly late: DurationBuckets;
  /** End of the last hold with the result "done", on the servers' clock. */
  readonly lastDoneMs: number | null;
}

const noDurations: DurationBuckets = {
  sumMs: 0,
  buckets: new Array<number>(durationBucketBoundsMs.length + 1).fill(0),
};

export const zeroHistoryCounters: HistoryCounters = {
  results: { done: 0, failed: 0, lost: 0, stopped: 0, skipped: 0, missed: 0 },
  waited: noDurations,
  held: noDurations,
  late: noDurations,
  lastDoneMs: null,
};

export function countHistoryRecord(counters: HistoryCounters, record: HistoryRecord): HistoryCounters {
  const { result, count, token, waitedMs, beganMs, endedMs, tickMs } = record;
  const tookMs = beganMs === null || endedMs === null ? null : endedMs - beganMs;
  const lateMs = beganMs === null || tickMs === null ? null : beganMs - tickMs;
  return {
    results: { ...counters.results, [result]: counters.results[result] + count },
    waited: countDuration(counters.waited, token === "" ? null : waitedMs),
    held: countDuration(counters.held, tookMs),
    late: countDuration(counters.late, lateMs),
    lastDoneMs: result === "done" ? Math.max(endedMs ?? 0, counters.lastDoneMs ?? 0) || null : counters.lastDoneMs,
  };
}

function countDuration({ sumMs, buckets }: DurationBuckets, durationMs: number | null): DurationBuckets {
  if (durationMs === null) return { sumMs, buckets };
  const ms = Math.max(0, Math.round(durationMs)); // the servers' clock may have been set back
  const found = durationBucketBoundsMs.findIndex((bound) => ms <= bound);
  const place = found === -1 ? durationBucketBoundsMs.length : found;
  return { sumMs: sumMs + ms, buckets: buckets.map((count, index) => (index === place ? count + 1 : count)) };
}

/** Returns the sum of the counters of two histories. */
export function addHistoryCounters(one: HistoryCounters, other: HistoryCounters): HistoryCounters {
  const sum = (left: DurationBuckets, right: DurationBuckets): DurationBuckets => ({
    sumMs: left.sumMs + right.sumMs,
    buckets: left.buckets.map((count, index) => count + (right.buckets[index] ?? 0)),
  });
  return {
    results: Object.fromEntries(
      historyResults.map((result) => [result, one.results[result] + other.results[result]]),
    ) as HistoryCounters["results"],
    waited: sum(one.waited, other.waited),
    held: sum(one.held, other.held),
    late: sum(one.late, other.late),
    lastDoneMs: Math.max(one.lastDoneMs ?? 0, other.lastDoneMs ?? 0) || null,
  };
}

/** Parses stored counters. A missing or invalid number becomes 0. */
export function parseHistoryCounters(value: unknown): HistoryCounters {
  const fields: JsonFields = isJsonObject(value) ? value : {};
  const results = isJsonObject(fields["results"]) ? fields["results"] : {};
  const { lastDoneMs } = fields;
  return {
    results: Object.fromEntries(
      historyResults.map((one) => [one, countOf(results[one])]),
    ) as HistoryCounters["results"],
    waited: durationsOf(fields["waited"]),
    held: durationsOf(fields["held"]),
    late: durationsOf(fields["late"]),
    lastDoneMs: typeof lastDoneMs === "number" ? lastDoneMs : null,
  };
}

function durationsOf(value: unknown): DurationBuckets {
  if (!isJsonObject(value)) return noDurations;
  const buckets: readonly unknown[] = Array.isArray(value["buckets"]) ? value["buckets"] : [];
  return { sumMs: countOf(value["sumMs"]), buckets: noDurations.buckets.map((_, index) => countOf(buckets[index])) };
}

const countOf = (value: unknown): number => (Number.isSafeInteger(value) ? Math.max(0, Number(value)) : 0);
