import { expect, test } from "bun:test";
import {
  countHistoryRecord,
  durationBucketBoundsMs,
  parseHistoryCounters,
  zeroHistoryCounters,
} from "../../../../src/coordination/history/history_counters.ts";
import {
  emptyHistoryRecord,
  type HistoryRecord,
  parseHistoryRecord,
  storedHistoryRecordFields,
} from "../../../../src/coordination/history/history_record.ts";

const hold = (more: Partial<HistoryRecord>): HistoryRecord => ({
  ...emptyHistoryRecord("done"),
  host: "db1",
  pid: 812,
  user: "root",
  token: "7",
  beganMs: 1000,
  endedMs: 1000,
  ...more,
});

test("a duration is counted in the first bucket whose bound it does not exceed, and a longer one in the last", () => {
  for (const [index, bound] of durationBucketBoundsMs.entries()) {
    for (const [ms, place] of [[bound, index], [bound + 1, index + 1]] as const) {
      const { held } = countHistoryRecord(zeroHistoryCounters, hold({ endedMs: 1000 + ms }));
      expect(held.sumMs).toBe(ms);
      expect(held.buckets.indexOf(1)).toBe(place);
      expect(held.buckets.reduce((sum, one) => sum + one)).toBe(1);
    }
  }
});

test("only what happened is counted: no wait without a grant, no hold without an end, no delay without a tick", () => {
  const missed = countHistoryRecord(zeroHistoryCounters, {
    ...emptyHistoryRecord("missed", "id", 5000),
    count: 3,
    untilMs: 9000,
  });
  expect(missed).toEqual({ ...zeroHistoryCounters, results: { ...zeroHistoryCounters.results, missed: 3 } });
  const lost = countHistoryRecord(zeroHistoryCounters, hold({ result: "lost", endedMs: null, waitedMs: 7 }));
  expect(lost.results.lost).toBe(1);
  expect([lost.waited.sumMs, lost.held, lost.late]).toEqual([7, zeroHistoryCounters.held, zeroHistoryCounters.late]);
});

test("a clock that was set back counts as no time, and the last success does not go back", () => {
  const first = countHistoryRecord(zeroHistoryCounters, hold({ endedMs: 9000, tickMs: 500 }));
  const second = countHistoryRecord(first, hold({ beganMs: 4000, endedMs: 3000, tickMs: 5000 }));
  expect([second.held.sumMs, second.late.sumMs, second.lastDoneMs]).toEqual([8000, 500, 9000]);
});

test("counters are read as they were written; damaged ones are 0", () => {
  const counters = countHistoryRecord(zeroHistoryCounters, hold({ endedMs: 70_000, waitedMs: 12, tickMs: 900 }));
  expect(parseHistoryCounters(JSON.parse(JSON.stringify(counters)))).toEqual(counters);
  for (const damaged of [null, 3, [], { results: 5, held: { sumMs: -1, buckets: ["a", 1e99] } }]) {
    expect(parseHistoryCounters(damaged)).toEqual(zeroHistoryCounters);
  }
});

test("a record is read as it was written, without the characters that move a cursor", () => {
  const record = hold({ exitCode: 0, why: "all is well" });
  expect(parseHistoryRecord(storedHistoryRecordFields(record))).toEqual(record);
  expect(parseHistoryRecord(storedHistoryRecordFields(hold({ why: "\u001b[2J" + "x".repeat(300) })))?.why).toMatch(
    /^\P{Cc}{200}$/u,
  );
  for (const damaged of [null, 1, {}, { result: "granted", beganMs: 1 }, { result: "done" }]) {
    expect(parseHistoryRecord(damaged)).toBeNull();
  }
});
