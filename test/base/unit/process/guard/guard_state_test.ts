import { describe, expect, test } from "bun:test";
import {
  childLine,
  forgetLine,
  idleGuard,
  knownLine,
  leftLine,
  overdueJobs,
  readGuardLine,
  renewLine,
  sessionLine,
  sessionToEnd,
  watchLine,
} from "../../../../../src/base/process/guard/guard_state.ts";

const unreported = { nodes: [], known: [], isLeft: false };
const read = (lines: string[]) =>
  lines.flatMap((text) => text.split("\n").slice(0, -1)).reduce(readGuardLine, idleGuard);

test("what baton writes is what the guard reads, deadlines rounded to the early side", () => {
  const child = { pid: 812, ownGroup: true, startTicks: 77 };
  const state = read([watchLine("abc", 1500.9), childLine("abc", child)]);
  expect([...state.jobs]).toEqual([["abc", { ...unreported, child, deadlineMs: 1500 }]]);
  expect(state.done).toBe(false);
  expect(read([watchLine("abc", 500), renewLine("abc", 900)]).jobs.get("abc")?.deadlineMs).toBe(900);
  expect(read([watchLine("abc", 500), "done\n"]).done).toBe(true);
});

test("several jobs are watched, each with a deadline of its own, up to the moment it is forgotten", () => {
  const copies = { sinceTicks: 5, image: "1-2-3-4", adopters: [1, 7] };
  const child = { pid: 3, ownGroup: false, startTicks: 4, copies };
  const lines = [watchLine("a", 500), watchLine("b", 700), childLine("b", child), renewLine("a", 600)];
  expect(overdueJobs(read(lines), 599)).toEqual([]);
  expect(overdueJobs(read(lines), 600)).toEqual(["a"]);
  expect(overdueJobs(read(lines), 700)).toEqual(["a", "b"]);
  const after = read([...lines, forgetLine("a")]);
  expect([...after.jobs]).toEqual([["b", { ...unreported, child, deadlineMs: 700 }]]);
  expect(after.done).toBe(false);
});

test("a guard that was told nothing has nothing to strike at", () => {
  expect(overdueJobs(idleGuard, Number.MAX_VALUE)).toEqual([]);
});

test("a deadline that cannot be read is over: striking too early is safe, never is not", () => {
  for (const word of ["", "x", "NaN", "Infinity"]) {
    expect(overdueJobs(readGuardLine(read([watchLine("abc", 500)]), `renew abc ${word}`), 0)).toEqual(["abc"]);
    expect(overdueJobs(readGuardLine(idleGuard, `watch abc ${word}`), 0)).toEqual(["abc"]);
  }
});

test("there is one session at a time, the last one that was told of, or none", () => {
  const old = { owner: 12, handle: "b2xk" };
  const newer = { owner: 12, handle: "bmV3+/=" };
  expect(read([sessionLine(old)]).session).toEqual(old);
  expect(read([sessionLine(old), watchLine("a", 500), sessionLine(newer)]).session).toEqual(newer);
  expect(read([sessionLine(old), sessionLine(null)]).session).toBeNull();
  expect(idleGuard.session).toBeNull();
});

describe("the session is ended", () => {
  const session = { owner: 12, handle: "c2Vzc2lvbg==" };
  const told = [sessionLine(session), watchLine("a", 500), watchLine("b", 700)];
  const after = (cleared: readonly string[], isGone = true) => ({
    isGone: (pid: number) => isGone && pid === 12,
    isCleared: (cookie: string) => cleared.includes(cookie),
  });

  test("when its owner is dead and nothing is left of any job", () => {
    expect(sessionToEnd(read(told), after(["a", "b"]))).toEqual(session);
    expect(sessionToEnd(read([...told, forgetLine("b")]), after(["a"]))).toEqual(session);
    expect(sessionToEnd(read([sessionLine(session)]), after([]))).toEqual(session);
  });

  test("not while its owner lives, not while something may be left of one job", () => {
    expect(sessionToEnd(read(told), after(["a", "b"], false))).toBeNull();
    expect(sessionToEnd(read(told), after(["a"]))).toBeNull();
    expect(sessionToEnd(read(told), after([]))).toBeNull();
  });

  test("not when it is to expire, and not by a guard that has nothing to do any more", () => {
    expect(sessionToEnd(read([...told, sessionLine(null)]), after(["a", "b"]))).toBeNull();
    expect(sessionToEnd(read([...told, "done\n"]), after(["a", "b"]))).toBeNull();
  });
});

test("an unknown line, and one about a job that is forgotten, leave everything as it is", () => {
  const state = read([watchLine("abc", 500)]);
  for (const line of ["whatever 9", "renew other 9", "child other 1 own 1", "forget other"]) {
    expect(readGuardLine(state, line)).toBe(state);
  }
});

test("the paths of a lock may have any character, and processes are told apart by their start", () => {
  const nodes = ["/locks/a b/h/x-1", "/locks/ä%20/h/x-2"];
  const state = read([
    watchLine("a", 500, nodes),
    knownLine("a", [{ pid: 7, startTicks: 70 }, { pid: 8, startTicks: 80 }]),
  ]);
  expect(state.jobs.get("a")).toMatchObject({
    nodes,
    known: [{ pid: 7, startTicks: 70 }, { pid: 8, startTicks: 80 }],
    isLeft: false,
  });
});

test("the session of a job that baton gave up is not ended, whatever the guard finds", () => {
  const session = sessionLine({ owner: 9, handle: "h" });
  const after = { isGone: () => true, isCleared: () => true };
  expect(sessionToEnd(read([session, watchLine("a", 1)]), after)?.handle).toBe("h");
  expect(sessionToEnd(read([session, watchLine("a", 1), watchLine("b", 1), leftLine("b")]), after)).toBeNull();
});
