import { expect, test } from "bun:test";
import { WaitQueue } from "../../../../src/protocols/zeromq/wait_queue.ts";
import { outcome } from "./socket_rig.ts";

const tick = () => new Promise((resolve) => setImmediate(resolve));

test("first come, first served, up to one that gets nothing", async () => {
  const waiting = new WaitQueue();
  const room = ["a", "b"];
  const results = [1, 2, 3].map(() => outcome(waiting.wait(() => room.shift(), undefined)));
  waiting.pump();
  await tick();
  expect(results.map(({ of }) => of)).toEqual(["a", "b", "pending"]);
  expect(waiting.length).toBe(1);
});

test("a pump that an attempt sets off does not make the same attempt again", async () => {
  const waiting = new WaitQueue();
  let attempts = 0;
  const result = outcome(waiting.wait(() => {
    waiting.pump();
    return ++attempts;
  }, undefined));
  waiting.pump();
  await tick();
  expect([result.of, attempts]).toEqual([1, 1]);
});

test("what an attempt makes possible for those before it is done behind it", async () => {
  const waiting = new WaitQueue();
  let isThere = false;
  const first = outcome(waiting.wait(() => isThere || undefined, undefined));
  waiting.pump();
  isThere = true;
  waiting.pump();
  await tick();
  expect(first.of).toBe(true);
});

test("an attempt that throws ends its wait, and the next one is made", async () => {
  const waiting = new WaitQueue();
  const error = new Error("no");
  const first = outcome(waiting.wait(() => {
    throw error;
  }, undefined));
  const second = outcome(waiting.wait(() => 2, undefined));
  waiting.pump();
  await tick();
  expect([first.of, second.of]).toEqual([error, 2]);
});

test("an abort ends one wait only; an aborted one does not begin; the end ends all", async () => {
  const waiting = new WaitQueue();
  const giveUp = new AbortController();
  const first = outcome(waiting.wait(() => undefined, giveUp.signal));
  const second = outcome(waiting.wait(() => undefined, undefined));
  giveUp.abort("late");
  expect(() => waiting.wait(() => 1, giveUp.signal)).toThrow("late");
  await tick();
  expect([first.of, second.of, waiting.length]).toEqual(["late", "pending", 1]);
  waiting.fail("closed");
  await tick();
  expect([second.of, waiting.length]).toEqual(["closed", 0]);
});
