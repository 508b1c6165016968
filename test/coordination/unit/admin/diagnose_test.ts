import { describe, expect, test } from "bun:test";
import {
  diagnoseLock,
  type LockNodeSnapshot,
  lockQueueSequenceMax,
  type LockSnapshot,
} from "../../../../src/coordination/admin/diagnose.ts";
import { formatLockState } from "../../../../src/coordination/lock/lock_state.ts";

const node = (name: string): LockNodeSnapshot => ({ name, isEphemeral: true });
const lock: LockSnapshot = {
  where: 'lock "x"',
  path: "/baton/locks/x",
  data: formatLockState({ limit: null }),
  children: ["q", "h"],
  holders: [node("x-a")],
  queue: [node("100-x-b-0000000007")],
  sequence: 8,
};
const say = (change: Partial<LockSnapshot>) =>
  diagnoseLock({ ...lock, ...change }).map(({ severity, what, action }) => `${severity}: ${what}: ${action}`);

test("a lock that is held and waited for gives nothing to say", () => {
  expect(say({})).toEqual([]);
  expect(say({ holders: [], queue: [] })).toEqual([]);
});

describe("what is said of", () => {
  const cases: [what: string, change: Partial<LockSnapshot>, said: RegExp][] = [
    [
      "data that another layout wrote",
      { data: new TextEncoder().encode("{}") },
      /^problem: .*its layout is missing, and this version reads 1: use the version that wrote it: use one version/,
    ],
    [
      "another program's nodes",
      { children: ["q", "h", "lock-0000000001"] },
      /^problem: .*\/lock-0000000001" is not baton's/,
    ],
    ["a holder that nobody knows", { holders: [node("mine")] }, /^problem: .*\/h\/mine" is no holder/],
    ["a holder without a session", { holders: [{ ...node("x-a"), isEphemeral: false }] }, /^problem: .*stays forever/],
    ["a contender that nobody knows", { queue: [node("lock-0000000001")] }, /^warning: .*is ignored: delete it$/],
    [
      "a contender without a session",
      { queue: [{ ...node("100-x-b-0000000007"), isEphemeral: false }] },
      /wait forever/,
    ],
    ["a counter near its end", { sequence: lockQueueSequenceMax - 5 }, /^warning: its counter is at 2147483642/],
    ["a counter at its end", { queue: [node("100-x-b-2147483647")] }, /^warning: its counter has reached its end/],
    [
      "more holders than the limit",
      { data: formatLockState({ limit: 1 }), holders: [node("p0-a"), node("p1-c")], queue: [] },
      /^warning: 2 processes hold a permit, but the limit is 1/,
    ],
  ];
  for (const [what, change, said] of cases) {
    test(what, () => {
      const found = say(change);
      expect(found).toHaveLength(1);
      expect(found[0]).toMatch(said);
    });
  }

  test("text of others, without its control characters", () => {
    expect(say({ holders: [node("ops\n\u001b[31m")] })[0]).toContain('/h/ops\ufffd\ufffd[31m" is no holder');
  });
});
