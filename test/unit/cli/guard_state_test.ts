import { expect, test } from "bun:test";
import { childLine, idleGuard, readGuardLine, renewLine, watchLine } from "../../../src/cli/guard/guard_state.ts";

const read = (lines: string[]) =>
  lines.flatMap((text) => text.split("\n").slice(0, -1)).reduce(readGuardLine, idleGuard);

test("what baton writes is what the guard reads, deadlines rounded to the early side", () => {
  const child = { pid: 812, ownGroup: true, startTicks: 77 };
  expect(read([watchLine("abc", 1500.9), childLine(child)])).toEqual({
    cookie: "abc",
    child,
    deadlineMs: 1500,
    done: false,
  });
  expect(read([watchLine("abc", 500), renewLine(900)]).deadlineMs).toBe(900);
  expect(read([watchLine("abc", 500), "done\n"]).done).toBe(true);
});

test("a guard that was told nothing has no deadline", () => {
  expect(idleGuard.deadlineMs).toBe(Infinity);
});

test("a deadline that cannot be read is over: striking too early is safe, never is not", () => {
  for (const word of ["", "x", "NaN", "Infinity"]) {
    expect(readGuardLine({ ...idleGuard, cookie: "abc" }, `renew ${word}`).deadlineMs).toBe(0);
  }
});

test("an unknown line leaves the old deadline", () => {
  const state = read([watchLine("abc", 500)]);
  expect(readGuardLine(state, "whatever 9")).toBe(state);
});
