import { expect, test } from "bun:test";
import { type ExplainedLockFacts, explainLock } from "../../../../../commands/coordination/looking/explain_lock.ts";
import { emptyHistoryRecord, type HistoryRecord } from "../../../../../src/coordination/history/history_record.ts";

const minuteMs = 60_000;
const iso = (ms: number) => new Date(ms).toISOString();
const nowMs = Date.UTC(2026, 10, 23, 5, 10);
const hold = (more: Partial<HistoryRecord> = {}): HistoryRecord => {
  const beganMs = nowMs - 26 * 60 * minuteMs;
  return { ...emptyHistoryRecord("done"), host: "db2", pid: 77, beganMs, endedMs: beganMs + 12 * minuteMs, ...more };
};
const facts = (more: Partial<ExplainedLockFacts> = {}): ExplainedLockFacts => ({
  ...{ name: "job", nowMs, limit: null, holders: [], waiters: [], schedules: [] },
  history: { records: [], refusals: null },
  ...more,
});
const holder = {
  ...{
    host: "db1",
    pid: 812,
    reason: "bulk",
    since: iso(nowMs - 130 * minuteMs),
    session_timeout_ms: 10_000,
    revoke: null,
  },
};
const schedule = {
  ...{ id: "0123456789ab", schedule: "0 * * * *", zone: "UTC", uptoMs: nowMs, isZoneKnown: true, open: null },
  ...{ nextMs: nowMs + 50 * minuteMs, retry: null },
};

test("a lock that waits names its holder, the usual time, those who wait, and what becomes of the next tick", () => {
  const explained = explainLock(facts({
    holders: [holder],
    waiters: [{ host: "db3", pid: 9, place: 1, since: iso(nowMs - minuteMs) }],
    history: {
      records: [hold(), hold(), hold()],
      refusals: { count: 4, lastMs: nowMs - 2 * minuteMs, host: "db4", pid: 3, user: "root" },
    },
    schedules: [schedule],
  }));
  expect(explained.sentence).toBe(
    '"job" waits for db1 (pid 812), since 2026-11-23T03:00:00Z, 2 h 10 m; usually 12 m. ' +
      "1 call waits. The session of the holder " +
      "is alive: the servers end it 10 s after they no longer hear from it. " +
      "The next tick of 0 * * * * is 2026-11-23T06:00Z, and is " +
      "skipped if the lock is held then and the call does not wait.",
  );
  expect(explained.state).toBe("held");
  expect(explained.events.map(({ what }) => what)).toEqual([
    "ended",
    "ended",
    "ended",
    "held",
    "refused",
    "waits",
    "next",
  ]);
  expect(explained.events.map(({ text }) => text)).toContain("db4 (pid 3) found it busy, as number 4");
  expect(explained.unknown.join()).toContain("makes progress");
});

test("a tick that failed and is tried again is told before the next tick", () => {
  const sentenceWith = (fromMs: number, untilMs: number | null = null) => {
    const retry = { tickMs: nowMs - 10 * minuteMs, attempt: 2, fromMs, untilMs };
    return explainLock(facts({ schedules: [{ ...schedule, retry }] })).sentence;
  };
  expect(sentenceWith(nowMs + 1000)).toBe(
    '"job" is free. Of 0 * * * *, try 2 of the tick 2026-11-23T05:00Z waits for the first call from ' +
      "2026-11-23T05:10:01Z on. The next tick of 0 * * * * is 2026-11-23T06:00Z.",
  );
  expect(sentenceWith(0)).toContain("try 2 of the tick 2026-11-23T05:00Z waits for the next call.");
  expect(sentenceWith(0, nowMs)).toContain("waits for the next call.");
  expect(sentenceWith(0, nowMs - 1)).toBe('"job" is free. The next tick of 0 * * * * is 2026-11-23T06:00Z.');
});

test("a lock that was broken, permits, and an overdue tick are told", () => {
  const revoke = { by: "root@db9", reason: "deploy" };
  const { sentence, unknown } = explainLock(facts({
    limit: 2,
    holders: [{ ...holder, revoke }, { ...holder, host: "db5", since: iso(nowMs) }],
    schedules: [{ ...schedule, nextMs: nowMs - 3 * minuteMs }],
  }));
  expect(sentence).toContain(
    '"job" is held by db1 (pid 812), since 2026-11-23T03:00:00Z, 2 h 10 m and 1 more, with 2 of 2 permits',
  );
  expect(sentence).toContain("It was broken by root@db9 (deploy), and its command has not ended.");
  expect(sentence).toContain("The tick 2026-11-23T05:07Z of 0 * * * * is overdue for 3 m");
  expect(unknown).toContain("when it was broken");
});

test("a free lock tells how its last hold ended; one without records says that it does not know", () => {
  const lost = hold({
    result: "lost",
    endedMs: null,
    why: "its session ended, or its host died: the outcome is unknown",
  });
  const { sentence, unknown, state } = explainLock(facts({ history: { records: [hold(), lost], refusals: null } }));
  expect([state, sentence]).toEqual([
    "free",
    '"job" is free: the hold of db2 (pid 77) began, and is lost: its session ended, ' +
    "or its host died: the outcome is unknown, " +
    "2026-11-22T03:10:00Z.",
  ]);
  expect(unknown.join()).toContain("killed, host down, and network cut look the same");
  expect(explainLock(facts())).toEqual({
    ...{ state: "free", events: [], sentence: '"job" is free.' },
    unknown: ["earlier holds: no call has recorded one (--history, or --tick)"],
  });
  expect(explainLock(facts({ schedules: [schedule] })).unknown.join()).not.toContain("no call has recorded one");
  expect(explainLock(facts({ waiters: [{ host: "a", pid: 1, place: 1, since: iso(5) }] })).state).toBe("contended");
});

test("names of hosts and reasons cannot move the cursor", () => {
  const evil = "\u001b[2Jx";
  const { events, sentence } = explainLock(facts({
    holders: [{ ...holder, host: evil, reason: evil, revoke: { by: evil, reason: evil } }],
  }));
  expect(JSON.stringify([events, sentence])).not.toContain("\\u001b");
  const foreign = explainLock(
    facts({ history: { records: [hold({ why: "\u001b[2Jx", result: "failed" })], refusals: null } }),
  );
  expect(JSON.stringify([foreign.events, foreign.sentence])).not.toContain("\\u001b");
});
