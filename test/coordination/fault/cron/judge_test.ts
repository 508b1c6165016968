import { expect, test } from "bun:test";
import {
  emptyHistoryRecord,
  type HistoryRecord,
  type HistoryResult,
} from "../../../../src/coordination/history/history_record.ts";
import { judgeTicks, type TickEvidence, type TickMark } from "./judge.ts";

const tickMs = Date.UTC(2026, 0, 1, 3);
const mark = (more: Partial<TickMark> = {}): TickMark => ({
  ...{ tickMs, attempt: 1, host: "db1", beganMs: 0, endedMs: 100, result: "done" },
  ...more,
});
const record = (result: HistoryResult, more: Partial<HistoryRecord> = {}): HistoryRecord => ({
  ...emptyHistoryRecord(result, "id", tickMs),
  attempt: ["missed", "skipped"].includes(result) ? 0 : 1,
  ...more,
});
const judged = (evidence: Partial<TickEvidence>): string =>
  judgeTicks({ marks: [], records: [], due: [tickMs], retriesMax: 0, ...evidence }).join("\n");

test("what is as it must be is no failure", () => {
  expect(judged({ marks: [mark()], records: [record("done")] })).toBe("");
  expect(judged({ marks: [mark()], records: [record("lost")] })).toBe(""); // its end was not recorded
  expect(judged({ records: [record("lost")] })).toBe(""); // killed before its job began
  expect(judged({ records: [record("missed")] })).toBe("");
  const range = record("missed", { tickMs: tickMs - 120_000, untilMs: tickMs, count: 3 });
  expect(judged({ records: [range], due: [tickMs - 60_000, tickMs] })).toBe("");
  const tries = [mark({ result: null }), mark({ attempt: 2, beganMs: 200, endedMs: 300 })];
  expect(judged({ marks: tries, records: [record("lost"), record("done", { attempt: 2 })], retriesMax: 1 })).toBe("");
});

test("each broken promise is found", () => {
  const again = mark({ attempt: 2, beganMs: 200, endedMs: 300 });
  const overlapping = mark({ attempt: 2, beganMs: 50, endedMs: 60 });
  const both = [record("failed"), record("done", { attempt: 2 })];
  const cases: [evidence: Partial<TickEvidence>, says: string][] = [
    [{ marks: [mark(), overlapping], records: both, retriesMax: 1 }, "two ran at the same time"],
    [{ marks: [mark({ endedMs: null })], records: [record("done")] }, "one runs on"],
    [{ marks: [mark({ result: "failed" }), again], records: both }, "ran 2 times with 0 retries"],
    [{ marks: [mark(), mark({ beganMs: 200, endedMs: 300 })], records: [record("done")], retriesMax: 1 }, "came after"],
    [{}, "was missed silently"],
    [{ marks: [mark()] }, "ran, and the history does not have it"],
    [{ marks: [mark()], records: [record("missed")] }, "is recorded as missed, and ran"],
    [{ records: [record("done")] }, "is recorded as done 1, and its job never ran"],
    [{ marks: [mark({ result: null })], records: [record("done")] }, "and its job ended as null"],
    [{ marks: [mark()], records: [record("done"), record("lost")] }, "has 2 records"],
    [
      { marks: [mark(), again], records: [record("done"), record("done", { attempt: 2 })], retriesMax: 1 },
      "tried again after it was recorded as done",
    ],
  ];
  for (const [evidence, says] of cases) expect(judged(evidence)).toContain(says);
});

test("ticks that an operator opened again may run again, and never two at the same time", () => {
  const resets = [{ fromMs: tickMs - 1, toMs: tickMs }];
  const twice = [mark(), mark({ beganMs: 200, endedMs: 300 })];
  expect(judged({ marks: twice, records: [record("done")], resets })).toBe("");
  expect(judged({ marks: [mark(), mark({ beganMs: 50 })], resets })).toContain("two ran at the same time");
});
