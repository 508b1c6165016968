import { beforeEach, expect, test } from "bun:test";
import { Turns, type Worker } from "../../../../src/keeper/protocol/fair_scheduler.ts";

let nowMs = 0;
let later: (() => void)[] = [];
let turns: Turns;
let worked: string[] = [];
beforeEach(() => {
  nowMs = 0;
  later = [];
  worked = [];
  turns = new Turns({ now: () => nowMs, later: (callback) => later.push(callback) });
});

/** The sockets were looked at: what was put off until then. */
const look = () => later.splice(0).forEach((callback) => callback());

/** One that never has enough of it. */
function greedy(name: string): Worker {
  const worker = {
    work() {
      worked.push(name);
      for (const endMs = turns.sliceEnd(); !turns.isOver(endMs); nowMs++);
      turns.later(worker);
    },
  };
  return worker;
}

test("nobody works at once, and all in turn: who wants more goes to the end", () => {
  for (const name of ["a", "b", "c", "d", "e"]) turns.later(greedy(name));
  expect(worked).toEqual([]);
  for (let round = 0; round < 5; round++) look();
  expect(worked).toEqual(["a", "b", "c", "d", "e", "a", "b", "c", "d", "e"]);
});

test("a round is short, however many wait: the sockets are looked at in between", () => {
  for (let index = 0; index < 1000; index++) turns.later(greedy(`${index}`));
  look();
  expect(nowMs).toBeLessThan(10);
  expect(later).toHaveLength(1);
});

test("who has left does not work, not even in the round that has begun", () => {
  const second: Worker = { work: () => worked.push("second") };
  turns.later({ work: () => turns.leave(second) });
  turns.later(second);
  look();
  expect([worked, later.length]).toEqual([[], 0]);
});

test("who asks twice has one turn", () => {
  const worker: Worker = { work: () => worked.push("once") };
  turns.later(worker);
  turns.later(worker);
  look();
  look();
  expect(worked).toEqual(["once"]);
});
