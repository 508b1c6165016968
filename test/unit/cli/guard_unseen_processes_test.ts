/** What a strike may have missed, with a system in the test's hand. */
import { expect, test } from "bun:test";
import process from "node:process";
import type { ProcessRow } from "../../../src/cli/child/process_table.ts";
import { isBeingStarted, isHidden, type UnseenSights } from "../../../src/cli/guard/unseen_processes.ts";

const running = (pid: number, more: Partial<ProcessRow> = {}): ProcessRow => ({
  pid,
  parent: 1,
  group: pid,
  session: pid,
  startTicks: 5,
  dead: false,
  isCopy: false,
  isKernels: false,
  ...more,
});

/** With a stranger in it, and what a test adds. */
function system(rows: readonly ProcessRow[] = [], more: Partial<UnseenSights> = {}): UnseenSights {
  const all = [running(10), running(process.pid), ...rows];
  return {
    pids: () => all.map(({ pid }) => pid),
    row: (pid) => all.find((row) => row.pid === pid) ?? null,
    program: (pid) => pid === process.pid || pid === 20 ? "/usr/bin/baton" : "/bin/sh",
    isGroupThere: () => true,
    ...more,
  };
}

const failing = () => {
  throw new Error("EMFILE");
};

test("a copy of this program that has not run another one yet may become the command; nothing else may", () => {
  expect(isBeingStarted(system())).toBe(false);
  expect(isBeingStarted(system([running(20, { isCopy: true })]))).toBe(true);
  expect(isBeingStarted(system([running(20, { isCopy: true, dead: true })]))).toBe(false);
  expect(isBeingStarted(system([running(20)]))).toBe(false); // another baton
  expect(isBeingStarted(system([running(21, { isCopy: true })]))).toBe(false); // a shell's
});

test("a group that is there with nobody in it to be seen has processes that /proc hides", () => {
  expect(isHidden(77, system())).toBe(true);
  expect(isHidden(77, system([running(20, { group: 77, dead: true })]))).toBe(false);
  expect(isHidden(77, system([], { isGroupThere: () => false }))).toBe(false);
});

test("what cannot be read is no proof", () => {
  for (const blind of [system([], { pids: failing }), system([], { row: () => "unknown" })]) {
    expect(isBeingStarted(blind)).toBe(true);
    expect(isHidden(77, blind)).toBe(true);
  }
});
