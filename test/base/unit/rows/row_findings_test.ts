/** Each finding that is decided from rows: what it takes, and what is not enough. */
import { describe, expect, test } from "bun:test";
import type { JudgedRows } from "../../../../src/base/rows/finding.ts";
import type { FollowedCoordinationRow, HolderRow, WaiterRow } from "../../../../src/base/rows/object_row.ts";
import { judgeRows } from "../../../../src/base/rows/row_findings.ts";
import type { FollowedScheduleRow, RecordedRunRow } from "../../../../src/base/rows/schedule_row.ts";
import type { StoreRow } from "../../../../src/base/rows/store_row.ts";
import type { TopicDetailsRow } from "../../../../src/base/rows/topic_row.ts";

const nowMs = Date.UTC(2026, 0, 1, 12);
const ago = (ms: number) => new Date(nowMs - ms).toISOString();
const holder = { host: "db1", pid: 7, since: ago(3_600_000), revoke: null, warning: null } as HolderRow;
const waiter = { ...holder, place: 1 } as unknown as WaiterRow;
const object = (kind: "lock" | "election", change: Partial<FollowedCoordinationRow>): FollowedCoordinationRow => ({
  ...{ kind, name: "it's", limit: null, holders: 1, waiters: 0, first_holders: [holder], first_waiters: [] },
  ...{ problem: null, ...change },
});
const run = { result: "done", count: 1, host: "db1", why: null, until: null } as RecordedRunRow;
const schedule = (change: Partial<FollowedScheduleRow>): FollowedScheduleRow => ({
  ...{ name: "daily", schedule_id: "1", schedule: "0 0 * * *", time_zone: "UTC", settled_until: ago(1) },
  ...{ next: new Date(nowMs + 1).toISOString(), overdue: false, running: null, retry: null, runs: [run], ...change },
});
const running = { tick: ago(1000), attempt: 1, host: "db1", pid: 7, began: ago(900), lost: false };
const none = { count: 0, bytes: 0 };
const store = (change: Partial<StoreRow>): StoreRow => ({
  ...{ name: "orders", folder: "/s", paused: false, oldest: null, next: null, processors: 1 },
  states: { waiting: none, in_flight: none, done: none, dead: none, dropped: none, cancelled: none },
  ...{
    dead_letters: { pending: 0, forwarded: 0, error: null },
    disk: { used_bytes: 1, free_bytes: 1 << 30 },
    ...change,
  },
});
const free = { holders: 0, waiters: 1, first_holders: [], first_waiters: [waiter] };
const permits: Partial<FollowedCoordinationRow> = {
  ...{ waiters: 1, first_holders: [{ ...holder, mode: "permit" }], first_waiters: [{ ...waiter, mode: "permit" }] },
};
const topic = { topic: "t", epoch: 1, state: "stored", server: "s1" } as const;
const details = (change: Partial<TopicDetailsRow>) =>
  ({ topic: "t", subscribers: [], oldest: null, damage: null, ...change }) as unknown as TopicDetailsRow;
const dead = { ...store({}).states, dead: { count: 2, bytes: 9 } };

describe("rows with a finding", () => {
  const cases: [id: string, rows: JudgedRows][] = [
    ["object-unreadable", { lock: [object("lock", { problem: "another layout" })] }],
    ["holder-not-guarded", { lock: [object("lock", { first_holders: [{ ...holder, warning: "no guard" }] })] }],
    [
      "broken-but-held",
      { lock: [object("lock", { first_holders: [{ ...holder, revoke: { by: "ops", reason: "" } }] })] },
    ],
    ["lock-not-taken", { lock: [object("lock", free)] }],
    ["lock-not-taken", { lock: [object("lock", { ...permits, holders: 1, limit: 2 })] }],
    ["election-without-leader", { election: [object("election", free)] }],
    ["pool-items-failed", { pool: [{ name: "p", holders: 0, waiters: 0, done: 1, failed: 1, items: [] }] }],
    ["schedule-overdue", { schedule: [schedule({ next: ago(120_000) })] }],
    ["schedule-lost", { schedule: [schedule({ running: { ...running, lost: true } })] }],
    ["schedule-failing", { schedule: [schedule({ runs: [{ ...run, result: "failed" }] })] }],
    ["schedule-missed", { schedule: [schedule({ runs: [run, { ...run, result: "missed" }] })] }],
    ["topics-without-server", { topic: [{ ...topic, there: false, served: false }] }],
    ["subscriber-behind", {
      topicDetails: [details({ subscribers: [{ client: "b", position: "0", pending: 10_001 }] })],
    }],
    ["subscriber-behind", {
      topicDetails: [
        details({ subscribers: [{ client: "b", position: "0", pending: 1 }], oldest: ago(3_600_001) }),
      ],
    }],
    ["topic-damaged", { topicDetails: [details({ damage: "2 rows are damaged" })] }],
    ["store-unattended", { store: [store({ next: ago(1), processors: 0 })] }],
    ["store-paused", { store: [store({ next: ago(1), processors: 0, paused: true })] }],
    ["store-paused", { store: [store({ next: ago(1), processors: 1, paused: true })] }],
    ["dead-letters", { store: [store({ states: dead })] }],
    ["dead-letters", { store: [store({ states: dead, dead_letters: { pending: 0, forwarded: 1, error: null } })] }],
    ["dead-letters-not-delivered", {
      store: [store({ dead_letters: { pending: 1, forwarded: 0, error: "refused" } })],
    }],
    ["disk-full", { store: [store({ disk: { used_bytes: 1, free_bytes: 1 << 20 } })] }],
  ];
  for (const [id, rows] of cases) {
    test(id, () => {
      const found = judgeRows(rows, nowMs);
      expect(found.map((one) => one.id as string)).toEqual([id]);
      expect(found.every(({ what, action }) => what !== "" && action !== "")).toBe(true);
    });
  }
});

test("a schedule that is overdue is also found to be failing; times are shown to the minute", () => {
  const failing = schedule({ next: ago(120_000), runs: [{ ...run, result: "failed" }] });
  const lost = schedule({ next: ago(120_000), running: { ...running, lost: true } });
  const missed = schedule({ runs: [{ ...run, result: "missed", until: ago(3_600_000) }] });
  const found = judgeRows({ schedule: [failing, lost, missed] }, nowMs).map(({ id, what }) => `${id}: ${what}`);
  expect(judgeRows({ schedule: [failing] }, nowMs)[0]?.action).toBe(
    "check that cron or baton cron runs on a host: baton explain daily; if no host has this schedule any longer: " +
      "baton cron forget daily",
  );
  expect(found).toEqual([
    "schedule-overdue: the tick of 2026-01-01T11:58Z has not begun on any host",
    "schedule-failing: the last run, on db1, failed",
    "schedule-overdue: the tick of 2026-01-01T11:58Z has not begun on any host",
    "schedule-lost: db1 began the tick of 2026-01-01T11:59Z, and lost the lock",
    "schedule-missed: missed the 11:00Z run: no host was running it",
  ]);
});

test("a run that failed says when it is tried again; one that is given up, what to do", () => {
  const failed = { ...run, result: "failed", why: "exited with 1" } as const;
  const retry = { tick: ago(60_000), attempt: 2, from: new Date(nowMs + 1000).toISOString(), until: null };
  const tooLate = { ...retry, from: ago(2), until: ago(1) };
  const [again, last, late] = judgeRows(
    { schedule: [retry, null, tooLate].map((next) => schedule({ runs: [failed], retry: next })) },
    nowMs,
  );
  expect(again).toMatchObject({
    what: "the last run, on db1, failed: exited with 1; try 2 of the tick 2026-01-01T11:59Z waits for the first call " +
      "from 2026-01-01T12:00:01Z on",
    action: "baton history daily",
  });
  expect(last).toMatchObject({
    what: "the last run, on db1, failed: exited with 1",
    action:
      "see why: baton history daily; run the job by hand if it cannot wait for its next tick, then baton history " +
      "forget daily",
  });
  expect(late).toEqual(last);
});

test("an offline server is started by the command that started it", () => {
  const rows = ["s1", "local", "local-ann", "locals"].map((server) => ({
    ...topic,
    server,
    there: false,
    served: false,
  }));
  expect(judgeRows({ topic: rows }, nowMs).map(({ action }) => action)).toEqual([
    "start it again: baton pubsub server --id s1 --data-dir FOLDER",
    "start it again: baton pubsub serve",
    "start it again: baton pubsub serve",
    "start it again: baton pubsub server --id locals --data-dir FOLDER",
  ]);
});

test("rows that are well have no finding", () => {
  const rows: JudgedRows = {
    lock: [
      object("lock", { waiters: 1, first_waiters: [waiter] }),
      object("lock", { ...permits, holders: 2, limit: 2 }),
      object("lock", { ...free, first_waiters: [{ ...waiter, since: ago(100) }] }),
    ],
    pool: [{ name: "p", holders: 1, waiters: 0, done: 1, failed: 0, items: [] }],
    schedule: [
      schedule({}),
      schedule({ runs: [] }),
      schedule({ runs: [run, { ...run, result: "skipped" }] }),
      schedule({ runs: [{ ...run, result: "failed" }], running }),
    ],
    topic: [{ ...topic, there: true, served: false }],
    topicDetails: [
      details({ subscribers: [{ client: "b", position: "0", pending: 10_000 }], oldest: ago(3_600_000) }),
      details({ subscribers: [{ client: "b", position: "9", pending: 0 }] }),
    ],
    store: [
      store({ next: new Date(nowMs + 1).toISOString(), processors: 0 }),
      store({}),
      store({ states: dead, dead_letters: { pending: 0, forwarded: 2, error: null } }),
      store({ next: ago(-1000), processors: 0, paused: true }),
      store({ next: ago(1), processors: null }),
    ],
  };
  expect(judgeRows(rows, nowMs)).toEqual([]);
});

test("the command that mends it can be pasted into a shell", () => {
  expect(judgeRows({ lock: [object("lock", free)] }, nowMs)[0]?.action).toBe("baton who --kind lock 'it'\\''s'");
});
