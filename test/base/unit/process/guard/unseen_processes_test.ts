/** What a strike may have missed, with a system in the test's hand. */
import { expect, test } from "bun:test";
import process from "node:process";
import type { ProcessRow } from "../../../../../src/base/process/proc/process_table.ts";
import {
  isCommandBeingStarted,
  procHidesProcesses,
  type ProcSystemCalls,
} from "../../../../../src/base/process/guard/kill_job.ts";

const running = (pid: number, more: Partial<ProcessRow> = {}): ProcessRow => ({
  pid,
  parent: 1,
  group: pid,
  session: pid,
  startTicks: 5,
  dead: false,
  isCopy: false,
  isStopped: false,
  isKernelThread: false,
  isEnding: false,
  hasEnvironment: true,
  ...more,
});

/** With a stranger in it, and what a test adds. */
function system(rows: readonly ProcessRow[] = [], more: Partial<ProcSystemCalls> = {}): ProcSystemCalls {
  const all = [running(10), running(process.pid), ...rows];
  return {
    pids: () => all.map(({ pid }) => pid),
    row: (pid) => all.find((row) => row.pid === pid) ?? null,
    program: (pid) => pid === process.pid || pid === 20 ? "/usr/bin/baton" : "/bin/sh",
    mounts: () => mountsWith("rw"),
    mayReadAll: () => false,
    ...more,
  };
}

const mountsWith = (options: string) =>
  `22 27 0:21 / /proc rw,relatime - proc proc ${options}\n23 27 0:22 / /sys rw - sysfs hidepid=2 rw\n`;

const failing = () => {
  throw new Error("EMFILE");
};

test("a copy of this program that has not run another one yet may become the command; nothing else may", () => {
  expect(isCommandBeingStarted(system())).toBe(false);
  expect(isCommandBeingStarted(system([running(20, { isCopy: true })]))).toBe(true);
  expect(isCommandBeingStarted(system([running(20, { isCopy: true, dead: true })]))).toBe(false);
  expect(isCommandBeingStarted(system([running(20)]))).toBe(false); // another baton
  expect(isCommandBeingStarted(system([running(21, { isCopy: true })]))).toBe(false); // a shell's
});

test("a /proc with hidepid hides others' processes, unless this one may read them all", () => {
  const withMounts = (mounts: string, mayReadAll = false) =>
    system([], { mounts: () => mounts, mayReadAll: () => mayReadAll });
  for (const options of ["rw", "rw,hidepid=0", "rw,hidepid=off"]) {
    expect([options, procHidesProcesses(withMounts(mountsWith(options)))]).toEqual([options, false]);
  }
  for (const value of ["1", "2", "4", "noaccess", "invisible", "ptraceable"]) {
    const mounts = mountsWith(`rw,hidepid=${value}`);
    expect([value, procHidesProcesses(withMounts(mounts))]).toEqual([value, true]);
    expect(procHidesProcesses(withMounts(mounts, true))).toBe(false);
    // The last one that was mounted there is the one that is read.
    expect(procHidesProcesses(withMounts(mountsWith("rw") + mounts))).toBe(true);
    expect(procHidesProcesses(withMounts(mounts + mountsWith("rw")))).toBe(false);
  }
});

test("what cannot be read is no proof", () => {
  for (const blind of [system([], { pids: failing }), system([], { row: () => "unknown" })]) {
    expect(isCommandBeingStarted(blind)).toBe(true);
  }
  expect(procHidesProcesses(system([], { mounts: failing }))).toBe(true);
});
