import { expect, test } from "bun:test";
import { keeper } from "../../../support/backends.ts";
import { faults } from "../lock/faults.ts";
import { checkHistory } from "../../../checker/check_history.ts";
import { generationHistory } from "./generation_history.ts";
import { judgeBarrier, type MemberEvidence } from "./judge.ts";
import type { BarrierPlan } from "./plan.ts";

const fault = faults.find(({ name }) => name === "wrapper killed") ?? faults[0];
if (fault === undefined) throw new Error("no fault");
const plan: BarrierPlan = {
  number: 0,
  backend: keeper,
  fault,
  childKind: "plain",
  seed: 1,
  phase: "waiting",
  onLost: "wait",
  restarts: true,
};

function member(
  name: string,
  fields: Partial<MemberEvidence> & { readonly openedMs?: number; readonly text?: string },
) {
  const { openedMs = 10_000, text = "7\n", ...rest } = fields;
  const section = { group: "g", name, openedMs, closedMs: 11_000, text };
  const exit = { code: 0, signal: null };
  return { name, section, exit, stderr: "", spawnedMs: 0, endedMs: 11_100, stoppedMs: [], ...rest };
}
/** Before the others came. */
const killed = { section: null, exit: { code: null, signal: "SIGKILL" }, endedMs: 3000 } as const;
const judged = (...members: MemberEvidence[]) => judgeBarrier(plan, { members, failures: [] }).failures.join("; ");
const [second, third] = [member("second", {}), member("third", { spawnedMs: 5000 })];
const again = member("victim again", { spawnedMs: 3500 });

test("three live members that start and leave together are as it must be", () => {
  expect(judged(member("victim", killed), second, again, third)).toBe("");
});

test("a start that counts a dead member, or one that has not come, is an early release", () => {
  expect(judged(member("victim", killed), second, third)).toContain("early release: second began with 2 of 3 alive");
  const late = member("third", { spawnedMs: 10_500, openedMs: 12_000 });
  expect(judged(member("victim", killed), second, again, late)).toContain("early release");
  const stopped = member("victim again", { spawnedMs: 3500, stoppedMs: [[2000, 10_050]] });
  expect(judged(member("victim", killed), second, stopped, third)).toContain("early release");
});

test("who leaves before another's command has ended, hangs, or ends with another code is found", () => {
  const others = [second, third];
  expect(judged(member("victim", killed), ...others, member("hasty", { endedMs: 10_500 }))).toContain(
    "hasty left 500 ms before",
  );
  expect(judged(member("victim", killed), ...others, member("stuck", { exit: null }))).toContain(
    "stuck still runs, not 0",
  );
  const exit = { code: 82, signal: null };
  expect(judged(member("victim", killed), ...others, member("wrong", { exit, section: null }))).toContain(
    "wrong 82, not 0",
  );
  const all = [...others, member("a", {}), member("b", {})];
  expect(judged(member("victim", killed), ...all)).toContain("4 were started with token 7");
});

test("the checker of histories rejects a start without all, and a generation of two tokens, by itself", () => {
  const verdicts = (...members: MemberEvidence[]) =>
    checkHistory(generationHistory("b", 3, members)).partitions.map(({ verdict }) => verdict);
  const early = member("early", { openedMs: 4000 });
  const broken = member("broken", { section: null });
  expect(verdicts(second, third, again)).toEqual(["linearizable"]);
  expect(verdicts(second, third, broken)).toEqual(["linearizable"]); // it may have been counted before it was lost
  expect(verdicts(second, third)).toEqual(["violated"]);
  expect(verdicts(second, third, early)).toEqual(["violated"]);
  expect(verdicts(second, third, member("other", { text: "8\n" }))).toEqual(["violated"]);
  expect(verdicts(second, third, again, member("fourth", {}))).toEqual(["violated"]);
});
