import { expect, test } from "bun:test";
import { keeper } from "../../../support/backends.ts";
import { faults } from "../lock/faults.ts";
import type { Section } from "../lock/observer.ts";
import { judgePool, type PoolEvidence } from "./judge.ts";
import type { PoolPlan } from "./plan.ts";

function planOf(expectation: string): PoolPlan {
  const fault = faults.find(({ expect }) => expect === expectation);
  if (fault === undefined) throw new Error(`No fault expects "${expectation}"`);
  return {
    number: 0,
    backend: keeper,
    fault,
    childKind: "plain",
    seed: 1,
    items: 1,
    jobs: 1,
    isBounded: false,
    isSplit: false,
    querySeconds: null,
  };
}

const run = (openedMs: number, closedMs: number | null, text: string): Section => {
  return { group: "g", name: `run at ${openedMs}`, openedMs, closedMs, text };
};
const well = { code: 0, signal: null } as const;

function judged(
  expectation: string,
  runs: readonly Section[],
  more: Partial<PoolEvidence> = {},
  plan: Partial<PoolPlan> = {},
): readonly string[] {
  return judgePool({ ...planOf(expectation), ...plan }, {
    sections: new Map([["a", runs]]),
    states: new Map([["a", "done"]]),
    ends: [{ name: "victim", exit: well, stderr: "" }],
    failures: [],
    faultMs: 500,
    busyMs: 0,
    endMs: 9000,
    ...more,
  }).failures;
}

const lost = run(0, 4000, "7 victim\n");
const again = run(4100, 5000, "9 pool 2\nok\n");

test("an item whose run was lost in time, and that ran again to its end, is as it must be", () => {
  expect(judged("loses", [lost, again])).toEqual([]);
});

test("two runs at once, a token that did not grow, and one that was never told are found", () => {
  expect(judged("loses", [{ ...lost, closedMs: 4150 }, again])).toEqual(["item a ran twice at once for 50 ms"]);
  expect(judged("loses", [lost, { ...again, text: "7 pool 2\nok\n" }])).toEqual(["a run of a had token 7 after 7"]);
  expect(judged("loses", [{ ...lost, text: "victim\n" }, again])[0]).toContain("had no fencing token");
});

test("an item that is not done, never came to its end, or runs on is found", () => {
  expect(judged("loses", [lost, again], { states: new Map([["a", "free"]]) })).toEqual(["item a is free, not done"]);
  expect(judged("loses", [lost])).toEqual(["item a never came to its end"]);
  expect(judged("loses", [lost, { ...again, closedMs: null }])).toEqual(["item a runs on"]);
});

test("where nothing was lost each item runs once", () => {
  expect(judged("survives", [again])).toEqual([]);
  expect(judged("survives", [{ ...lost, text: "7 victim\nok\n" }, again])).toEqual([
    "item a ran 2 times: 0 to 4000 7 victim, ok; 4100 to 5000 9 pool 2, ok",
  ]);
});

test("an item that a machine too slow for its lease has lost may run again", () => {
  const stderr = 'baton: "a": Lock "a" is lost: no server responded in time; the command was stopped by SIGTERM\n';
  const ends = [{ name: "victim", exit: { code: 79, signal: null }, stderr }];
  expect(judged("survives", [lost, again], { ends })).toEqual([]);
  expect(judged("survives", [lost, again], { ends: [{ name: "victim", exit: well, stderr: "" }] })).toHaveLength(1);
});

test("what a killed pool has started may live for a second, and nobody else may end like it", () => {
  const killed = { code: null, signal: "SIGKILL" } as const;
  const ends = [{ name: "victim", exit: killed, stderr: "" }, { name: "pool 2", exit: well, stderr: "" }];
  expect(judged("killed", [{ ...lost, closedMs: 1500 }, again], { ends })).toEqual([]);
  expect(judged("killed", [{ ...lost, closedMs: 1501 }, again], { ends })).toEqual([
    "the victim's processes were gone 1001 ms after its end",
  ]);
  expect(judged("loses", [lost, again], { ends })).toEqual(['victim ended with SIGKILL, saying ""']);
  const bug = [{ name: "victim", exit: { code: 70, signal: null }, stderr: "?" }];
  expect(judged("loses", [lost, again], { ends: bug })).toEqual([
    'victim ended with 70, saying "?"',
    'victim said "?"',
  ]);
});

test("an item that is run again by a list from before its end is found", () => {
  const ended = { ...lost, text: "7 victim\nok\n" };
  const stale = { ...again, text: "9 pool 2\nagain\nok\n" };
  expect(judged("loses", [ended, stale], {}, { querySeconds: 1 })).toEqual([
    "item a was run again by a list from before its end: 0 to 4000 7 victim, ok; 4100 to 5000 9 pool 2, again, ok",
  ]);
  expect(judged("loses", [ended, stale])).toEqual([]); // its end was not remembered, as its pool was lost
  expect(judged("loses", [lost, again], {}, { querySeconds: 1 })).toEqual([]);
});

test("a pool that is refused is as it must be where some are set up otherwise, and nowhere else", () => {
  const ends = [{ name: "victim", exit: well, stderr: "" }, {
    name: "pool 2",
    exit: { code: 78, signal: null },
    stderr: "",
  }];
  expect(judged("survives", [again], { ends })).toEqual(['pool 2 ended with 78, saying ""']);
  expect(judged("survives", [again], { ends }, { isSplit: true })).toEqual([]);
});
