import { expect, test } from "bun:test";
import type { ScheduleRow } from "../../../../src/base/rows/schedule_row.ts";
import { CountedMetricNames } from "../../../../src/coordination/view/counted_names.ts";
import { buildObjectUseMetrics, type ObjectUseMetricsReading } from "../../../../src/coordination/view/use_metrics.ts";
import { countHistoryRecord, zeroHistoryCounters } from "../../../../src/coordination/history/history_counters.ts";
import type { HistoryRecord } from "../../../../src/coordination/history/history_record.ts";
import { formatMetrics } from "../../../../src/base/terminal/metrics_text.ts";

const options = { namesMax: 10 };
const noUses = { lock: [], election: [], barrier: [], gate: [], pool: [] };
const empty: ObjectUseMetricsReading = {
  atMs: 1_000_000,
  tookMs: 20,
  clockOffsetMs: 250,
  uses: noUses,
  histories: [],
  schedules: [],
};

const linesOf = (reading: ObjectUseMetricsReading, more = {}) =>
  formatMetrics(buildObjectUseMetrics(reading, { ...options, ...more })).split("\n").filter((line) =>
    !line.startsWith("#")
  );

const record = (fields: Partial<HistoryRecord>): HistoryRecord => ({
  ...{ result: "done", schedule: "", tickMs: null, untilMs: null, count: 1, attempt: 0, host: "h", pid: 1, user: "u" },
  ...{ token: "7", waitedMs: 5, beganMs: 1000, endedMs: 3000, exitCode: 0, signal: null, why: "" },
  ...fields,
});

test("holders and waiters of each kind; a number that an ACL hides has no sample", () => {
  const use = (name: string, holders: number | null, waiters: number | null) => ({ name, holders, waiters });
  const lines = linesOf({
    ...empty,
    uses: {
      ...noUses,
      lock: [use('a"b', 1, 2), use("hidden", null, 4)],
      election: [use("e", 1, 0)],
      gate: [use("g", 1, 0)],
    },
  });
  expect(lines).toContain('baton_lock_holders{name="a\\"b"} 1');
  expect(lines).toContain('baton_lock_waiters{name="hidden"} 4');
  expect(lines.filter((line) => line.includes('holders{name="hidden"'))).toEqual([]);
  expect(lines).toContain('baton_election_leaders{name="e"} 1');
  expect(lines).toContain('baton_gate_closed{name="g"} 1');
  expect(lines).toContain("baton_clock_offset_seconds 0.25");
});

test("the items of a pool are one name; a lock with a slash in its name keeps it", () => {
  const lock = ["p/1", "p/2", "q/1"].map((name) => ({ name, holders: 1, waiters: 0 }));
  const lines = linesOf({ ...empty, uses: { ...noUses, lock, pool: [{ name: "p", holders: 2, waiters: 0 }] } });
  expect(lines.filter((line) => line.startsWith("baton_lock_holders"))).toEqual([
    'baton_lock_holders{name="p"} 2',
    'baton_lock_holders{name="q/1"} 1',
  ]);
});

test("names above the limit are one, the most used keep theirs, and no count is lost", () => {
  const lock = Array.from({ length: 30 }, (_, place) => ({ name: `n${place}`, holders: 1, waiters: place }));
  const lines = linesOf({ ...empty, uses: { ...noUses, lock } }, { namesMax: 3 });
  const waiters = lines.filter((line) => line.startsWith("baton_lock_waiters"));
  expect(waiters.map((line) => /name="(.*)"/.exec(line)?.[1]).sort()).toEqual(["_other", "n27", "n28", "n29"]);
  const total = waiters.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
  expect(total).toBe(30 * 29 / 2);
});

test("the counters of a history: results, refusals, cumulative buckets in seconds", () => {
  const records = [record({}), record({ result: "failed", waitedMs: 50, endedMs: 1_000 + 7_200_001 })];
  const counters = records.reduce(countHistoryRecord, zeroHistoryCounters);
  const refusals = { count: 4, lastMs: 1, host: "h", pid: 1, user: "u" };
  const lines = linesOf({ ...empty, histories: [{ kind: "lock", name: "db", counters, refusals }] });
  expect(lines).toContain('baton_lock_ends_total{name="db",result="done"} 1');
  expect(lines).toContain('baton_lock_ends_total{name="db",result="failed"} 1');
  expect(lines).toContain('baton_lock_ends_total{name="db",result="missed"} 0');
  expect(lines).toContain('baton_lock_refused_total{name="db"} 4');
  expect(lines).toContain('baton_lock_wait_seconds_bucket{name="db",le="0.01"} 1');
  expect(lines).toContain('baton_lock_wait_seconds_bucket{name="db",le="0.1"} 2');
  expect(lines).toContain('baton_lock_wait_seconds_sum{name="db"} 0.055');
  expect(lines).toContain('baton_lock_hold_seconds_bucket{name="db",le="7200"} 1');
  expect(lines).toContain('baton_lock_hold_seconds_bucket{name="db",le="+Inf"} 2');
  expect(lines).toContain('baton_lock_hold_seconds_count{name="db"} 2');
  expect(lines).toContain('baton_lock_last_success_timestamp_seconds{name="db"} 3');
});

test("counters of names above the limit never go back when another name is used more or a history is deleted", () => {
  const counted = new CountedMetricNames(2);
  const history = (name: string, results: Partial<Record<"done" | "lost", number>>) => ({
    ...{ kind: "lock" as const, name, refusals: null },
    counters: { ...zeroHistoryCounters, results: { ...zeroHistoryCounters.results, ...results } },
  });
  const read = (...histories: ReturnType<typeof history>[]) => {
    const lines = linesOf({ ...empty, histories }, { namesMax: 2, counted });
    const samples = lines.flatMap((
      line,
    ) => [...line.matchAll(/^baton_lock_ends_total\{name="(.*)",result="(.*)"\} (.*)/g)]);
    return Object.fromEntries(
      samples.filter(([, , , value]) => value !== "0").map((
        [, name, result, value],
      ) => [`${name} ${result}`, Number(value)]),
    );
  };
  expect(read(history("a", { done: 9 }), history("b", { done: 8 }), history("c", { lost: 7 }))).toEqual({
    ...{ "a done": 9, "b done": 8, "_other lost": 7 },
  });
  const busier = read(history("a", { done: 9 }), history("b", { done: 8 }), history("c", { lost: 7, done: 30 }));
  expect(busier).toEqual({ "a done": 9, "b done": 8, "_other lost": 7, "_other done": 30 });
  expect(read(history("a", { done: 9 }), history("b", { done: 8 }), history("d", { done: 1 }))).toEqual({
    ...{ "a done": 9, "b done": 8, "_other lost": 7, "_other done": 31 },
  });
  const again = read(
    history("a", { done: 9 }),
    history("c", { done: 1 }),
    history("d", { done: 2 }),
    history("e", { done: 1 }),
  );
  expect(again).toEqual({ "a done": 9, "c done": 1, "_other lost": 7, "_other done": 33 });
});

test("a tick is overdue 90 s after its time, unless a host runs one", () => {
  const iso = (ms: number) => new Date(ms).toISOString();
  const running = { tick: iso(0), attempt: 1, host: "h", pid: 1, began: iso(0), lost: false };
  const at = (nextMs: number, isRunning = false): ScheduleRow => ({
    ...{ name: "backup", schedule_id: "i", schedule: "0 3 * * *", time_zone: "UTC", overdue: true },
    ...{ settled_until: iso(900_000), next: iso(nextMs), running: isRunning ? running : null, retry: null },
  });
  const overdue = (schedule: ScheduleRow) =>
    linesOf({ ...empty, schedules: [schedule] }).find((line) => line.startsWith("baton_tick_overdue"));
  expect(overdue(at(910_000))).toBe('baton_tick_overdue{name="backup",schedule="0 3 * * *"} 0');
  expect(overdue(at(909_999))).toBe('baton_tick_overdue{name="backup",schedule="0 3 * * *"} 1');
  expect(overdue(at(909_999, true))).toBe('baton_tick_overdue{name="backup",schedule="0 3 * * *"} 0');
});
