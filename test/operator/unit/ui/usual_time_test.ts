import { expect, test } from "bun:test";
import type { RecordedRunRow } from "../../../../src/base/rows/schedule_row.ts";
import { HoldTimes, timedLocksMax } from "../../../../src/operator/ui/usual_time.ts";
import { sampleNowMs, samplePage } from "../../../support/ui_sample_rows.ts";

const { tables: { locks = {} }, answers = {} } = samplePage(sampleNowMs);
const lock = locks["gpu"];
const holder = lock?.first_holders[0];
if (lock === undefined || lock === null || holder === undefined) throw new Error("the sample has no such lock");
const heldSince = (id: string, ms: number) => {
  return { ...lock, first_holders: [{ ...holder, id, since: new Date(ms).toISOString() }] };
};

/** Holds a lock for each of these durations, one after the other. */
function hold(times: HoldTimes, name: string, durations: readonly number[]): void {
  for (const [index, ms] of durations.entries()) {
    times.note(name, heldSince(`${index}`, index * 1_000_000), index * 1_000_000);
    times.note(name, null, index * 1_000_000 + ms);
  }
}

test("the usual time of a lock is the median of its holds, and not known after two of them", () => {
  const times = new HoldTimes();
  hold(times, "a", [10_000, 90_000]);
  expect(times.usualMs("a")).toBeNull();
  hold(times, "a", [30_000]);
  expect(times.usualMs("a")).toBe(30_000);
});

test("a lock that is handed over ends one hold and begins another", () => {
  const times = new HoldTimes();
  for (const [id, at] of [["a", 0], ["b", 5000], ["c", 10_000], ["d", 15_000]] as const) {
    times.note("x", heldSince(id, at), at);
    times.note("x", heldSince(id, at), at + 1);
  }
  expect(times.usualMs("x")).toBe(5000);
});

test("a recorded history gives the usual time at once", () => {
  const times = new HoldTimes();
  times.noteHistory("a", answers["/history"] as readonly RecordedRunRow[]);
  expect(times.usualMs("a")).toBe(12 * 60_000);
});

test("each lock is asked for its history once, the one that is held the longest first", () => {
  const times = new HoldTimes();
  times.note("young", heldSince("1", 500), 600);
  times.note("old", heldSince("2", 100), 600);
  times.note("free", null, 600);
  expect(times.takeUnasked(1)).toEqual(["old"]);
  expect(times.takeUnasked(9)).toEqual(["young"]);
  expect(times.takeUnasked(9)).toEqual([]);
});

test("the number of locks with times has a limit: the one that was noted first is forgotten", () => {
  const times = new HoldTimes();
  for (let index = 0; index <= timedLocksMax; index++) hold(times, `lock${index}`, [1000, 1000, 1000]);
  expect(times.usualMs("lock0")).toBeNull();
  expect(times.usualMs(`lock${timedLocksMax}`)).toBe(1000);
});
