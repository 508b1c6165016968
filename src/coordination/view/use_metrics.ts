/** Builds the metrics of `baton metrics` from one reading. Pure. */
import { isScheduleOverdue, type ScheduleRow } from "../../base/rows/schedule_row.ts";
import { type ListedObjectKind, listedObjectKinds, type ObjectsInUse } from "../admin/list_in_use.ts";
import { durationBucketBoundsMs, type DurationBuckets, type HistoryCounters } from "../history/history_counters.ts";
import { type HistoryKind, historyKinds } from "../history/history_log.ts";
import { historyResults } from "../history/history_record.ts";
import type { NamedHistoryCounters } from "../history/list_histories.ts";
import { CountedMetricNames, otherNamesMetricLabel } from "./counted_names.ts";
import { type Metric, metricFactory, type MetricSample } from "../../base/terminal/metrics_text.ts";

export interface ObjectUseMetricsReading {
  /** When the reading was made, in Unix milliseconds. */
  readonly atMs: number;
  readonly tookMs: number;
  /** How far the servers' clock is ahead of this machine's; null if unknown. */
  readonly clockOffsetMs: number | null;
  readonly uses: ObjectsInUse;
  readonly histories: readonly NamedHistoryCounters[];
  readonly schedules: readonly ScheduleRow[];
}

const { metric, gauge } = metricFactory("baton");

const gaugesByKind = {
  lock: [["lock_holders", "Holders of a lock."], ["lock_waiters", "Calls in the queue of a lock."]],
  election: [["election_leaders", "Leaders of an election: 0 or 1."], ["election_candidates", "Candidates that wait."]],
  barrier: [["barrier_members", "Members that run."], ["barrier_waiters", "Members that wait for the start."]],
  gate: [["gate_closed", "1 for a closed gate."], null],
  pool: [["pool_jobs", "Jobs of a pool that run."], ["pool_waiters", "Jobs that wait for the total limit."]],
} as const satisfies Record<ListedObjectKind, readonly [readonly [string, string], readonly [string, string] | null]>;

export function buildObjectUseMetrics(
  reading: ObjectUseMetricsReading,
  { namesMax, counted = new CountedMetricNames(namesMax) }: {
    /** How many names of each kind get their own label. All other names share the label `_other`. */
    readonly namesMax: number;
    /** Remembers the names of earlier readings, so that no counter decreases. */
    readonly counted?: CountedMetricNames;
  },
): Metric[] {
  const groups = new Map(historyKinds.map((kind) => [kind, historiesByLabel(reading, kind, counted)]));
  return [
    gauge("read_seconds", "Time that the last reading took.", reading.tookMs / 1000),
    ...(reading.clockOffsetMs === null ? [] : [
      gauge(
        "clock_offset_seconds",
        "How far the servers' clock is ahead of the clock of this machine.",
        reading.clockOffsetMs / 1000,
      ),
    ]),
    ...listedObjectKinds.flatMap((kind) => useMetrics(reading, kind, namesMax)),
    ...[...groups].flatMap(([kind, byLabel]) => historyMetrics(kind, byLabel)),
    ...tickMetrics(reading, namesMax, groups.get("lock") ?? new Map()),
  ].filter(({ samples }) => samples.length > 0);
}

function useMetrics({ uses }: ObjectUseMetricsReading, kind: ListedObjectKind, namesMax: number): Metric[] {
  const used = uses[kind].map((use) => ({ ...use, name: groupOf(use.name, kind, uses) }));
  const keep = namesToKeep(used.map((use) => [use.name, (use.holders ?? 0) + (use.waiters ?? 0)] as const), namesMax);
  return gaugesByKind[kind].flatMap((definition, place) => {
    if (definition === null) return [];
    const sums = new Map<string, number>();
    for (const { name, holders, waiters } of used) {
      const value = place === 0 ? holders : waiters;
      const label = keep(name);
      if (value !== null) sums.set(label, (sums.get(label) ?? 0) + value);
    }
    const [gaugeName, help] = definition;
    return [metric("gauge", gaugeName, help, [...sums].map(([name, value]) => ({ labels: { name }, value })))];
  });
}

/**
 * Returns the name under which a lock or another object is counted. An item of a pool, whose lock is below the pool's
 * name, is counted under the name of the pool.
 */
function groupOf(name: string, kind: ListedObjectKind, { pool }: ObjectsInUse): string {
  const [component = name, ...rest] = name.split("/");
  return kind === "lock" && rest.length > 0 && pool.some((one) => one.name === component) ? component : name;
}

/** Returns a function from a name to its label. The most used names have their own label. */
function namesToKeep(used: readonly (readonly [name: string, count: number])[], namesMax: number) {
  const counts = new Map<string, number>();
  for (const [name, count] of used) counts.set(name, (counts.get(name) ?? 0) + count);
  const ordered = [...counts].sort(([one, more], [other, less]) => less - more || (one < other ? -1 : 1));
  const kept = new Set(ordered.slice(0, namesMax).map(([name]) => name));
  kept.delete(otherNamesMetricLabel);
  return (name: string) => (kept.has(name) ? name : otherNamesMetricLabel);
}

type CountersByLabel = ReadonlyMap<string, readonly NamedHistoryCounters[]>;

function historiesByLabel(
  { uses, histories }: ObjectUseMetricsReading,
  kind: HistoryKind,
  counted: CountedMetricNames,
): CountersByLabel {
  const own = histories.filter((one) => one.kind === kind);
  return counted.group(kind, own.map((one) => ({ ...one, name: groupOf(one.name, kind, uses) })));
}

function historyMetrics(kind: HistoryKind, byLabel: CountersByLabel): Metric[] {
  const samplesOf = (
    make: (labels: { name: string }, all: readonly NamedHistoryCounters[]) => readonly MetricSample[],
  ) => [...byLabel].flatMap(([name, all]) => make({ name }, all));
  const sum = (all: readonly NamedHistoryCounters[], count: (one: NamedHistoryCounters) => number) =>
    all.reduce((total, one) => total + count(one), 0);
  const durations = (name: string, help: string, of: (counters: HistoryCounters) => DurationBuckets) =>
    metric(
      "histogram",
      `${kind}_${name}`,
      help,
      samplesOf((labels, all) => durationSamples(labels, all.map(({ counters }) => of(counters)))),
    );
  return [
    metric(
      "counter",
      `${kind}_ends_total`,
      "Ends of holds, and ticks, by result: those that are recorded in the history.",
      samplesOf((labels, all) =>
        historyResults.map((result) => ({
          labels: { ...labels, result },
          value: sum(all, ({ counters }) => counters.results[result]),
        }))
      ),
    ),
    metric(
      "counter",
      `${kind}_refused_total`,
      "Calls that did not get the lock, where the history is on.",
      samplesOf((labels, all) => [{ labels, value: sum(all, ({ refusals }) => refusals?.count ?? 0) }]),
    ),
    durations("wait_seconds", "Time from the call to the grant, of holds that have ended.", ({ waited }) => waited),
    durations("hold_seconds", "Time from the grant to the end.", ({ held }) => held),
    metric(
      "gauge",
      `${kind}_last_success_timestamp_seconds`,
      "End of the last hold whose command exited with 0.",
      samplesOf((labels, all) => {
        const [only] = all;
        const lastMs = all.length === 1 && labels.name !== otherNamesMetricLabel
          ? only?.counters.lastDoneMs ?? null
          : null;
        return lastMs === null ? [] : [{ labels, value: lastMs / 1000 }];
      }),
    ),
  ];
}

function tickMetrics({ atMs, schedules }: ObjectUseMetricsReading, namesMax: number, locks: CountersByLabel): Metric[] {
  const keep = namesToKeep(schedules.map(({ name }) => [name, 1] as const), namesMax);
  const shown = schedules.filter(({ name }) => keep(name) !== otherNamesMetricLabel);
  const perSchedule = (
    name: string,
    help: string,
    of: (one: ObjectUseMetricsReading["schedules"][number]) => number | null,
  ) =>
    metric(
      "gauge",
      name,
      help,
      shown.flatMap((one) => {
        const value = of(one);
        return value === null ? [] : [{ labels: { name: one.name, schedule: one.schedule }, value }];
      }),
    );
  const scheduled = new Set(schedules.map(({ name }) => name));
  const hasTicks = ({ name, counters }: NamedHistoryCounters) =>
    scheduled.has(name) || counters.late.buckets.some(Boolean);
  const late = [...locks].filter(([, all]) => all.some(hasTicks));
  return [
    perSchedule(
      "tick_settled_timestamp_seconds",
      "The last tick that was run, skipped or missed.",
      ({ settled_until }) => Date.parse(settled_until) / 1000,
    ),
    perSchedule(
      "tick_next_timestamp_seconds",
      "The next tick.",
      ({ next }) => (next === null ? null : Date.parse(next) / 1000),
    ),
    perSchedule(
      "tick_overdue",
      "1 if the next tick should have begun by now, and no host runs one.",
      (row) => Number(isScheduleOverdue(row, atMs)),
    ),
    metric(
      "histogram",
      "tick_late_seconds",
      "Time from a tick to the start of its command.",
      late.flatMap(([name, all]) => durationSamples({ name }, all.map(({ counters }) => counters.late))),
    ),
  ];
}

/** Returns the samples of one histogram, in seconds. */
function durationSamples(labels: Readonly<Record<string, string>>, all: readonly DurationBuckets[]): MetricSample[] {
  let count = 0;
  const buckets = [...durationBucketBoundsMs, Infinity].map((bound, place): MetricSample => {
    count += all.reduce((sum, { buckets: counts }) => sum + (counts[place] ?? 0), 0);
    return {
      suffix: "_bucket",
      labels: { ...labels, le: bound === Infinity ? "+Inf" : String(bound / 1000) },
      value: count,
    };
  });
  const sumMs = all.reduce((sum, one) => sum + one.sumMs, 0);
  return [...buckets, { suffix: "_sum", labels, value: sumMs / 1000 }, { suffix: "_count", labels, value: count }];
}
