/** Whether anything of a job lives, read from a table that changes during the reading. */
import { expect, test } from "bun:test";
import { findLivingProcesses } from "../../../../../src/base/process/proc/job_processes.ts";

/** Looks at a table that changes between a look and the question who of those found lives. */
class MovingTable {
  looks = 0;
  readonly #states: readonly { readonly found: readonly number[]; readonly alive: readonly number[] }[];

  constructor(...states: { found: number[]; alive: number[] }[]) {
    this.#states = states;
  }

  readonly find = () => this.#states[Math.min(this.looks++, this.#states.length - 1)]?.found ?? [];
  readonly isAlive = (pid: number) =>
    this.#states[Math.min(this.looks, this.#states.length) - 1]?.alive.includes(pid) ?? false;
}

test("a child taken in from one that died during the look is found", () => {
  // 7 was among baton's children, died before its own could be read, and 8 came after baton's had been.
  const table = new MovingTable({ found: [7], alive: [] }, { found: [7, 8], alive: [8] });
  expect(findLivingProcesses(table.find, table.isAlive)).toEqual([8]);
});

test("a look with somebody new in it is not the last, though nobody lived when asked", () => {
  const table = new MovingTable(
    { found: [7], alive: [] },
    { found: [7, 8], alive: [] },
    { found: [7, 8, 9], alive: [9] },
  );
  expect(findLivingProcesses(table.find, table.isAlive)).toEqual([9]);
});

test("the dead that were dead at the look before are believed; a table without anybody is looked at once", () => {
  const dead = new MovingTable({ found: [7, 8], alive: [] });
  expect(findLivingProcesses(dead.find, dead.isAlive)).toEqual([]);
  expect(dead.looks).toBe(2);
  const empty = new MovingTable({ found: [], alive: [] });
  expect(findLivingProcesses(empty.find, empty.isAlive)).toEqual([]);
  expect(empty.looks).toBe(1);
});

test("a job whose processes come and go faster than they are looked at counts as alive", () => {
  let last = 0;
  expect(findLivingProcesses(() => [++last], () => false)).toEqual([last]);
  expect(last).toBeLessThan(100);
});
