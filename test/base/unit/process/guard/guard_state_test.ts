import { describe, expect, test } from "bun:test";
import {
  chooseGuardSessionToEnd,
  guardChildLine,
  guardForgetLine,
  guardGiveUpLine,
  guardKnownProcessesLine,
  guardRenewLine,
  guardSessionLine,
  guardWatchLine,
  idleGuardState,
  overdueGuardedJobs,
  readGuardLine,
} from "../../../../../src/base/process/guard/guard_state.ts";

const unreported = { nodes: [], known: [], isLeft: false };
const read = (lines: string[]) =>
  lines.flatMap((text) => text.split("\n").slice(0, -1)).reduce(readGuardLine, idleGuardState);

test("what baton writes is what the guard reads, deadlines rounded to the early side", () => {
  const child = { pid: 812, ownGroup: true, startTicks: 77 };
  const state = read([guardWatchLine("abc", 1500.9), guardChildLine("abc", child)]);
  expect([...state.jobs]).toEqual([["abc", { ...unreported, child, deadlineMs: 1500 }]]);
  expect(state.done).toBe(false);
  expect(read([guardWatchLine("abc", 500), guardRenewLine("abc", 900)]).jobs.get("abc")?.deadlineMs).toBe(900);
  expect(read([guardWatchLine("abc", 500), "done\n"]).done).toBe(true);
});

test("several jobs are watched, each with a deadline of its own, up to the moment it is forgotten", () => {
  const child = { pid: 3, ownGroup: false, startTicks: 4 };
  const lines = [
    guardWatchLine("a", 500),
    guardWatchLine("b", 700),
    guardChildLine("b", child),
    guardRenewLine("a", 600),
  ];
  expect(overdueGuardedJobs(read(lines), 599)).toEqual([]);
  expect(overdueGuardedJobs(read(lines), 600)).toEqual(["a"]);
  expect(overdueGuardedJobs(read(lines), 700)).toEqual(["a", "b"]);
  const after = read([...lines, guardForgetLine("a")]);
  expect([...after.jobs]).toEqual([["b", { ...unreported, child, deadlineMs: 700 }]]);
  expect(after.done).toBe(false);
});

test("a guard that was told nothing has nothing to strike at", () => {
  expect(overdueGuardedJobs(idleGuardState, Number.MAX_VALUE)).toEqual([]);
});

test("a deadline that cannot be read is over: striking too early is safe, never is not", () => {
  for (const word of ["", "x", "NaN", "Infinity"]) {
    expect(overdueGuardedJobs(readGuardLine(read([guardWatchLine("abc", 500)]), `renew abc ${word}`), 0)).toEqual([
      "abc",
    ]);
    expect(overdueGuardedJobs(readGuardLine(idleGuardState, `watch abc ${word}`), 0)).toEqual(["abc"]);
  }
});

test("there is one session at a time, the last one that was told of, or none", () => {
  const old = { owner: 12, handle: "b2xk" };
  const newer = { owner: 12, handle: "bmV3+/=" };
  expect(read([guardSessionLine(old)]).session).toEqual(old);
  expect(read([guardSessionLine(old), guardWatchLine("a", 500), guardSessionLine(newer)]).session).toEqual(newer);
  expect(read([guardSessionLine(old), guardSessionLine(null)]).session).toBeNull();
  expect(idleGuardState.session).toBeNull();
});

describe("the session is ended", () => {
  const session = { owner: 12, handle: "c2Vzc2lvbg==" };
  const told = [guardSessionLine(session), guardWatchLine("a", 500), guardWatchLine("b", 700)];
  const after = (cleared: readonly string[], isGone = true) => ({
    isGone: (pid: number) => isGone && pid === 12,
    isCleared: (cookie: string) => cleared.includes(cookie),
  });

  test("when its owner is dead and nothing is left of any job", () => {
    expect(chooseGuardSessionToEnd(read(told), after(["a", "b"]))).toEqual(session);
    expect(chooseGuardSessionToEnd(read([...told, guardForgetLine("b")]), after(["a"]))).toEqual(session);
    expect(chooseGuardSessionToEnd(read([guardSessionLine(session)]), after([]))).toEqual(session);
  });

  test("not while its owner lives, not while something may be left of one job", () => {
    expect(chooseGuardSessionToEnd(read(told), after(["a", "b"], false))).toBeNull();
    expect(chooseGuardSessionToEnd(read(told), after(["a"]))).toBeNull();
    expect(chooseGuardSessionToEnd(read(told), after([]))).toBeNull();
  });

  test("not when it is to expire, and not by a guard that has nothing to do any more", () => {
    expect(chooseGuardSessionToEnd(read([...told, guardSessionLine(null)]), after(["a", "b"]))).toBeNull();
    expect(chooseGuardSessionToEnd(read([...told, "done\n"]), after(["a", "b"]))).toBeNull();
  });
});

test("an unknown line, and one about a job that is forgotten, leave everything as it is", () => {
  const state = read([guardWatchLine("abc", 500)]);
  for (const line of ["whatever 9", "renew other 9", "child other 1 own 1", "forget other"]) {
    expect(readGuardLine(state, line)).toBe(state);
  }
});

test("the paths of a lock may have any character, and processes are told apart by their start", () => {
  const nodes = ["/locks/a b/h/x-1", "/locks/ä%20/h/x-2"];
  const state = read([
    guardWatchLine("a", 500, nodes),
    guardKnownProcessesLine("a", [{ pid: 7, startTicks: 70 }, { pid: 8, startTicks: 80 }]),
  ]);
  expect(state.jobs.get("a")).toMatchObject({
    nodes,
    known: [{ pid: 7, startTicks: 70 }, { pid: 8, startTicks: 80 }],
    isLeft: false,
  });
});

test("the session of a job that baton gave up is not ended, whatever the guard finds", () => {
  const session = guardSessionLine({ owner: 9, handle: "h" });
  const after = { isGone: () => true, isCleared: () => true };
  expect(chooseGuardSessionToEnd(read([session, guardWatchLine("a", 1)]), after)?.handle).toBe("h");
  expect(
    chooseGuardSessionToEnd(
      read([session, guardWatchLine("a", 1), guardWatchLine("b", 1), guardGiveUpLine("b")]),
      after,
    ),
  )
    .toBeNull();
});
