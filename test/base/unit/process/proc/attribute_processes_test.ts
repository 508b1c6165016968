import { expect, test } from "bun:test";
import {
  attributeProcesses,
  type ObservedProcess,
  type ProcessOwners,
} from "../../../../../src/base/process/proc/attribute_processes.ts";

/** baton is process 1; job a's command is 10, started at 100, job b's 20, started at 200. */
const a = { cookie: "a", pid: 10, startTicks: 100 };
const b = { cookie: "b", pid: 20, startTicks: 200 };

/** A process of its own group and session, with a cleared environment, that baton has taken in. */
function process(pid: number, startTicks: number, rest: Partial<ObservedProcess> = {}): ObservedProcess {
  return { pid, parent: 1, group: pid, session: pid, startTicks, cookies: [], ...rest };
}

function ownersOf(
  processes: readonly ObservedProcess[],
  { jobs = [a, b], known = new Map() }: { jobs?: readonly (typeof a)[]; known?: ReadonlyMap<number, ProcessOwners> } =
    {},
) {
  const found = attributeProcesses(processes, jobs, known);
  return Object.fromEntries([...found].map(([pid, { certain, possible }]) => [
    pid,
    certain.size > 0 ? [...certain].join() : [...possible].map((cookie) => `${cookie}?`).join(),
  ]));
}

test("descent, session, group and cookie each say whose a process is", () => {
  expect(ownersOf([
    process(10, 100),
    process(20, 200),
    process(11, 300, { parent: 10 }),
    process(12, 300, { session: 20 }),
    process(13, 300, { group: 10 }),
    process(14, 300, { cookies: ["outer", "b"] }),
    process(15, 310, { parent: 14 }),
  ])).toEqual({ 10: "a", 20: "b", 11: "a", 12: "b", 13: "a", 14: "b", 15: "b" });
});

test("a process that shows nothing may be any job's that was there when it was started", () => {
  expect(ownersOf([process(30, 150), process(31, 200), process(32, 300), process(33, 300, { parent: 32 })])).toEqual({
    30: "a",
    31: "a?,b?",
    32: "a?,b?",
    33: "a?,b?",
  });
});

test("a process that is older than every job, and what is below it, is nobody's", () => {
  expect(ownersOf([process(5, 50), process(6, 300, { parent: 5 })])).toEqual({ 5: "", 6: "" });
});

test("once known to be a job's it stays so, whatever becomes of its parents and its environment", () => {
  const known = attributeProcesses([process(10, 100), process(11, 300, { parent: 10 })], [a, b], new Map());
  expect(ownersOf([process(11, 300)], { known })).toEqual({ 11: "a" });
  expect(ownersOf([process(11, 301)], { known })).toEqual({ 11: "a?,b?" }); // another one of the same number
});

test("jobs that began after a process was seen cannot own it, nor what it left behind while they began", () => {
  const c = { cookie: "c", pid: 30, startTicks: 400 };
  const known = attributeProcesses([process(31, 300)], [a, b], new Map());
  expect(ownersOf([process(31, 300), process(32, 500, { parent: 31 })], { jobs: [a, b, c], known })).toEqual({
    31: "a?,b?",
    32: "a?,b?",
  });
});

test("of two that may own it, the one that is left when the other is over owns it", () => {
  const known = attributeProcesses([process(31, 300)], [a, b], new Map());
  expect(ownersOf([process(31, 300)], { jobs: [b], known })).toEqual({ 31: "b" });
});

test("a process with the marks of two jobs is both's: neither lock may go before it", () => {
  expect(ownersOf([process(10, 100), process(11, 300, { parent: 10, cookies: ["b"] })])).toEqual({
    10: "a",
    11: "b,a",
  });
});

test("the number of a command may have been another's session before", () => {
  expect(ownersOf([process(31, 150, { session: 20 })])).toEqual({ 31: "a" });
});

test("a command that is not started yet owns what carries its cookie, and no other", () => {
  const soon = { cookie: "soon", pid: null, startTicks: 0 };
  const found = attributeProcesses([process(40, 500, { cookies: ["soon"] }), process(41, 500)], [a, soon], new Map());
  expect([...found.get(40)?.certain ?? []]).toEqual(["soon"]);
  expect([...found.get(41)?.certain ?? []]).toEqual(["a"]);
});
