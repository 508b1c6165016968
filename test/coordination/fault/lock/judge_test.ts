import { expect, test } from "bun:test";
import { checkHistory } from "../../../checker/check_history.ts";
import { keeper } from "../../../support/backends.ts";
import { faults } from "./faults.ts";
import { type Evidence, judge } from "./judge.ts";
import type { Section } from "./observer.ts";
import type { RoundPlan } from "./plan.ts";
import { sectionHistory } from "./section_history.ts";

function planOf(expectation: string): RoundPlan {
  const fault = faults.find((each) => each.expect === expectation);
  if (fault === undefined) throw new Error(`No fault expects "${expectation}"`);
  return { number: 0, backend: keeper, fault, childKind: "plain", seed: 1 };
}

type Part = Evidence["contenders"][number];
function contender(
  name: string,
  [openedMs, closedMs]: [number, number | null],
  rest: Partial<Part> & { text: string },
) {
  const { text, ...more } = rest;
  const section: Section = { group: "g", name, openedMs, closedMs, text };
  return { name, exit: { code: 0, signal: null }, stderr: "", ...more, sections: [section] };
}

function evidence(victim: Part, next: Part, more: Partial<Evidence> = {}): Evidence {
  return {
    contenders: [victim, next],
    failures: [],
    toldToLeave: false,
    faultMs: 100,
    busyMs: 0,
    endMs: 9000,
    ...more,
  };
}

const lost = contender("victim", [0, 4000], { text: "7\n", exit: { code: 79, signal: null } });
const closedAt = (closedMs: number | null) => lost.sections.map((section) => ({ ...section, closedMs }));
const next = contender("next", [4100, 4200], { text: "9\n" });

test("a lock that was lost in time and passed on is as it must be", () => {
  const result = judge(planOf("loses"), evidence(lost, next));
  expect(result).toMatchObject({ outcome: "lost", overlapMs: 0, marginMs: 100, takeoverMs: 4000, failures: [] });
});

test("an overlap is a failure", () => {
  const result = judge(planOf("loses"), evidence({ ...lost, sections: closedAt(4150) }, next));
  expect(result.overlapMs).toBe(50);
  expect(result.failures).toEqual(["two holders at once for 50 ms"]);
});

test("the checker of histories rejects an overlap and a token that goes back, by itself", () => {
  const verdictOf = (closedMs: number | null, token: string) => {
    const sections = [...closedAt(closedMs), ...contender("next", [4100, 4200], { text: token }).sections];
    return checkHistory(sectionHistory("l", sections)).partitions.map(({ verdict }) => verdict);
  };
  expect(verdictOf(4000, "9\n")).toEqual(["linearizable"]);
  expect(verdictOf(4150, "9\n")).toEqual(["violated"]);
  expect(verdictOf(null, "9\n")).toEqual(["violated"]);
  expect(verdictOf(4000, "6\n")).toEqual(["violated"]);
});

test("a section that never ended overlaps to the end of the round", () => {
  const result = judge(planOf("loses"), evidence({ ...lost, sections: closedAt(null) }, next));
  expect(result.overlapMs).toBe(100);
});

test("tokens must grow, and be there", () => {
  const failuresWith = (text: string) =>
    judge(planOf("loses"), evidence(lost, contender("next", [4100, 4200], { text }))).failures;
  expect(failuresWith("8\n")).toEqual([]);
  expect(failuresWith("7\n")).toEqual(["next had token 7 after 7"]);
  expect(failuresWith("")).toEqual(['next had no fencing token, but ""']);
});

test("another exit code than 79 is a failure when the lock was lost", () => {
  const result = judge(planOf("loses"), evidence({ ...lost, exit: { code: 0, signal: null } }, next));
  expect(result.failures).toEqual(["victim ended with 0; the lock should have been lost"]);
});

test("after SIGKILL of the wrapper its processes may live one second; the next has the lock within two", () => {
  const killed = { ...lost, exit: { code: null, signal: "SIGKILL" as const } };
  const soon = contender("next", [1200, 1300], { text: "9\n" });
  const goneAt = (closedMs: number, then = soon, busyMs = 0) =>
    judge(planOf("killed"), evidence({ ...killed, sections: closedAt(closedMs) }, then, { busyMs })).failures;
  expect(goneAt(1100)).toEqual([]);
  expect(goneAt(1101)).toEqual(["the victim's processes were gone 1001 ms after its end"]);
  expect(goneAt(1101, soon, 1)).toEqual([]);
  expect(goneAt(4101, contender("next", [4102, 4200], { text: "9\n" }), 9000)).toEqual([
    "the victim's processes were gone 4001 ms after its end",
  ]);
  expect(goneAt(1000, contender("next", [2100, 2200], { text: "9\n" }))).toEqual([]);
  expect(goneAt(1000, contender("next", [2101, 2200], { text: "9\n" }))).toEqual([
    "the next one had the lock 2001 ms after the victim's end",
  ]);
});

test("a waiter that gives up is a failure, also when the fault took its session", () => {
  const gaveUp = { ...next, sections: [], exit: { code: 69, signal: null } };
  expect(judge(planOf("loses"), evidence(lost, gaveUp)).failures).toHaveLength(1);
});

test("a leader that lost, came back and ended by itself has lost; the tokens of all its turns grow", () => {
  const [again] = contender("victim, turn 2", [5000, 5100], { text: "11\n" }).sections;
  if (again === undefined) throw new Error("no section");
  const back = { ...lost, exit: { code: 0, signal: null }, sections: [...lost.sections, again] };
  expect(judge(planOf("loses"), evidence(back, next))).toMatchObject({ outcome: "lost", failures: [] });
  const early = { ...back, sections: [...lost.sections, { ...again, openedMs: 4150, text: "8\n" }] };
  expect(judge(planOf("loses"), evidence(early, next)).failures).toEqual([
    "two holders at once for 50 ms",
    "victim, turn 2 had token 8 after 9",
  ]);
});

test("a script that holds ends by a signal with its lock, and by nothing else", () => {
  const outcomeFor = (signal: NodeJS.Signals | null, expectation: string) => {
    const script = { ...lost, isScript: true, exit: { code: signal === null ? 1 : null, signal } };
    return judge(planOf(expectation), evidence(script, next)).outcome;
  };
  expect(outcomeFor("SIGTERM", "loses")).toBe("lost");
  expect(outcomeFor("SIGKILL", "loses")).toBe("lost");
  expect(outcomeFor("SIGKILL", "killed")).toBe("killed");
  expect(outcomeFor("SIGHUP", "loses")).toBe("broken");
  expect(outcomeFor(null, "loses")).toBe("broken");
});
