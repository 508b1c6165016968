import { expect, test } from "bun:test";
import { decideTick, type TickProgress } from "../../../../src/coordination/tick/tick_decision.ts";

const calendar = {
  last: (at: number) => Math.floor(at / 60) * 60,
  next: (after: number) => (Math.floor(after / 60) + 1) * 60,
  count: () => 0,
};
const facts = { calendar, holders: [], isFree: true, waits: false, retriesMax: 1, lateMsMax: 100 };
const open = { tickMs: 600, attempt: 1, guid: "g", host: "db1", pid: 1, beganMs: 600 };

test("a try whose tick is in the future, because the clock was set back, is neither repeated nor settled before its time", () => {
  const failed: TickProgress = { uptoMs: 300, open: null, retry: { tickMs: 600, attempt: 2 } };
  const lost: TickProgress = { uptoMs: 300, open, retry: null };
  for (const progress of [failed, lost]) {
    expect(decideTick({ ...facts, progress, nowMs: 310 })).toEqual({ do: "leave", isRunning: false });
    // The tick of 360 is due, and goes first; nothing else is left of the one that failed.
    expect(decideTick({ ...facts, progress, nowMs: 370 })).toMatchObject({ do: "claim", run: { tickMs: 360 } });
  }
  const inTime: TickProgress = { uptoMs: 600, open, retry: null };
  expect(decideTick({ ...facts, progress: inTime, nowMs: 610 })).toMatchObject({
    do: "claim",
    run: { tickMs: 600, attempt: 2 },
    settled: [{ result: "lost" }],
  });
});
