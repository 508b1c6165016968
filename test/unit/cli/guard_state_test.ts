import { expect, test } from "bun:test";
import {
  childLine,
  forgetLine,
  idleGuard,
  overdueJobs,
  readGuardLine,
  renewLine,
  watchLine,
} from "../../../src/cli/guard/guard_state.ts";

const read = (lines: string[]) =>
  lines.flatMap((text) => text.split("\n").slice(0, -1)).reduce(readGuardLine, idleGuard);

test("what baton writes is what the guard reads, deadlines rounded to the early side", () => {
  const child = { pid: 812, ownGroup: true, startTicks: 77 };
  const state = read([watchLine("abc", 1500.9), childLine("abc", child)]);
  expect([...state.jobs]).toEqual([["abc", { child, deadlineMs: 1500 }]]);
  expect(state.done).toBe(false);
  expect(read([watchLine("abc", 500), renewLine("abc", 900)]).jobs.get("abc")?.deadlineMs).toBe(900);
  expect(read([watchLine("abc", 500), "done\n"]).done).toBe(true);
});

test("several jobs are watched, each with a deadline of its own, up to the moment it is forgotten", () => {
  const child = { pid: 3, ownGroup: false, startTicks: 4 };
  const lines = [watchLine("a", 500), watchLine("b", 700), childLine("b", child), renewLine("a", 600)];
  expect(overdueJobs(read(lines), 599)).toEqual([]);
  expect(overdueJobs(read(lines), 600)).toEqual(["a"]);
  expect(overdueJobs(read(lines), 700)).toEqual(["a", "b"]);
  const after = read([...lines, forgetLine("a")]);
  expect([...after.jobs]).toEqual([["b", { child, deadlineMs: 700 }]]);
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

test("an unknown line, and one about a job that is forgotten, leave everything as it is", () => {
  const state = read([watchLine("abc", 500)]);
  for (const line of ["whatever 9", "renew other 9", "child other 1 own 1", "forget other"]) {
    expect(readGuardLine(state, line)).toBe(state);
  }
});
