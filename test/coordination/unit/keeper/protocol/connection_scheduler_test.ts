import { beforeEach, expect, test } from "bun:test";
import {
  ConnectionScheduler,
  type ScheduledConnection,
} from "../../../../../src/coordination/keeper/protocol/connection_scheduler.ts";

let nowMs = 0;
let later: (() => void)[] = [];
let turns: ConnectionScheduler;
let worked: string[] = [];
beforeEach(() => {
  nowMs = 0;
  later = [];
  worked = [];
  turns = new ConnectionScheduler({ now: () => nowMs, afterPoll: (callback) => later.push(callback) });
});

/** The sockets were looked at: what was put off until then. */
const look = () => later.splice(0).forEach((callback) => callback());

/** One that never has enough of it. */
function greedy(name: string): ScheduledConnection {
  const worker = {
    runSlice() {
      worked.push(name);
      for (const endMs = turns.sliceEnd(); !turns.isOver(endMs); nowMs++);
      turns.schedule(worker);
    },
  };
  return worker;
}

test("nobody works at once, and all in turn: who wants more goes to the end", () => {
  for (const name of ["a", "b", "c", "d", "e"]) turns.schedule(greedy(name));
  expect(worked).toEqual([]);
  for (let round = 0; round < 5; round++) look();
  expect(worked).toEqual(["a", "b", "c", "d", "e", "a", "b", "c", "d", "e"]);
});

test("a round is short, however many wait: the sockets are looked at in between", () => {
  for (let index = 0; index < 1000; index++) turns.schedule(greedy(`${index}`));
  look();
  expect(nowMs).toBeLessThan(10);
  expect(later).toHaveLength(1);
});

test("who has left does not work, not even in the round that has begun", () => {
  const second: ScheduledConnection = { runSlice: () => worked.push("second") };
  turns.schedule({ runSlice: () => turns.remove(second) });
  turns.schedule(second);
  look();
  expect([worked, later.length]).toEqual([[], 0]);
});

test("who asks twice has one turn", () => {
  const worker: ScheduledConnection = { runSlice: () => worked.push("once") };
  turns.schedule(worker);
  turns.schedule(worker);
  look();
  look();
  expect(worked).toEqual(["once"]);
});
