import { expect, test } from "bun:test";
import {
  decideTick,
  type TickProgress,
  tickProgressAfterEnd,
} from "../../../../src/coordination/tick/tick_decision.ts";

const calendar = {
  last: (at: number) => Math.floor(at / 60) * 60,
  next: (after: number) => (Math.floor(after / 60) + 1) * 60,
  count: () => 0,
};
const facts = { calendar, holders: [], isFree: true, waits: false, retriesMax: 1, retryDelayMs: 0, lateMsMax: 100 };
const open = { tickMs: 600, attempt: 1, guid: "g", host: "db1", pid: 1, beganMs: 600 };

test("a try whose tick is in the future, after the clock was set back, is neither repeated nor settled early", () => {
  const failed: TickProgress = { uptoMs: 300, open: null, retry: { tickMs: 600, attempt: 2, fromMs: 0, untilMs: 700 } };
  const lost: TickProgress = { uptoMs: 300, open, retry: null };
  for (const progress of [failed, lost]) {
    expect(decideTick({ ...facts, progress, nowMs: 310 })).toEqual({ do: "leave", isRunning: false, againMs: null });
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

test("a further try waits, and begins before it is too late or the next tick comes", () => {
  const day = { ...calendar, next: () => 86_400, last: () => 0 };
  const fromOf = (rules: Partial<typeof facts>, nowMs: number) => {
    const progress = { uptoMs: 0, open: { ...open, tickMs: 0 }, retry: null };
    const end = { run: { tickMs: 0, attempt: 1 }, guid: "g", result: "failed", nowMs } as const;
    return tickProgressAfterEnd(progress, { ...end, rules: { ...facts, calendar: day, ...rules } }).retry;
  };
  expect(fromOf({ retryDelayMs: 60, lateMsMax: 3600 }, 100)).toEqual({
    ...{ tickMs: 0, attempt: 2, fromMs: 160, untilMs: 3600 },
  });
  expect(fromOf({ retryDelayMs: 60, lateMsMax: 120 }, 100)?.fromMs).toBe(118);
  expect(fromOf({ retryDelayMs: 60, lateMsMax: 3600, calendar: { ...day, next: () => 160 } }, 100)?.fromMs).toBe(140);
  expect(fromOf({ retryDelayMs: 0, lateMsMax: 3600 }, 100)?.fromMs).toBe(0);
  expect(fromOf({ retryDelayMs: 60, lateMsMax: 3600, retriesMax: 0 }, 100)).toBeNull();
  // A try that no call could take any more is not stored.
  expect(fromOf({ retryDelayMs: 60, lateMsMax: 100 }, 100)).toEqual({ tickMs: 0, attempt: 2, fromMs: 0, untilMs: 100 });
  expect(fromOf({ retryDelayMs: 60, lateMsMax: 99 }, 100)).toBeNull();
});

test("before its time a further try is left alone; one whose host died is recorded first, and waits, too", () => {
  const day = {
    ...facts,
    calendar: { ...calendar, last: () => 600, next: () => 86_400 },
    lateMsMax: 3600,
    retryDelayMs: 60,
  };
  const retry = { tickMs: 600, attempt: 2, fromMs: 700, untilMs: 4200 };
  const waiting: TickProgress = { uptoMs: 600, open: null, retry };
  expect(decideTick({ ...day, progress: waiting, nowMs: 699 })).toEqual({
    do: "leave",
    isRunning: false,
    againMs: 700,
  });
  expect(decideTick({ ...day, progress: waiting, nowMs: 700 })).toMatchObject({
    do: "claim",
    run: { tickMs: 600, attempt: 2 },
  });
  expect(decideTick({ ...day, retriesMax: 0, progress: waiting, nowMs: 700 })).toMatchObject({
    do: "leave",
    againMs: null,
  });
  const died: TickProgress = { uptoMs: 600, open, retry: null };
  expect(decideTick({ ...day, progress: died, nowMs: 640 })).toEqual({
    do: "settle",
    settled: [{ result: "lost", run: open }],
    retry,
  });
  expect(decideTick({ ...day, retriesMax: 0, progress: died, nowMs: 640 })).toMatchObject({
    do: "settle",
    retry: null,
  });
  // A failure waits; the death of a host need not.
  const again = { do: "claim", run: { tickMs: 600, attempt: 2 } };
  expect(decideTick({ ...day, lostDelayMs: 0, progress: died, nowMs: 640 })).toMatchObject(again);
});
