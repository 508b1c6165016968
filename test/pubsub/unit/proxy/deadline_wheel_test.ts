import { expect, test } from "bun:test";
import { DeadlineWheel, deadlineWheelTickMs } from "../../../../src/pubsub/proxy/deadline_wheel.ts";
import { FakeClock } from "../../../support/fake_clock.ts";

function wheel() {
  const clock = new FakeClock(1003);
  const due: { item: string; atMs: number }[] = [];
  return { clock, due, wheel: new DeadlineWheel<string>(clock, (item) => due.push({ item, atMs: clock.now() })) };
}

test("a deadline is noticed once, never early, and at most two ticks late", async () => {
  const { clock, due, wheel: deadlines } = wheel();
  const startMs = clock.now();
  const delays = [0, 1, 9, 10, 11, 99, 100, 777];
  for (const delayMs of delays) deadlines.set(`${delayMs}`, startMs + delayMs);
  await clock.advance(2000);
  expect(due.map(({ item }) => Number(item)).sort((a, b) => a - b)).toEqual(delays);
  for (const { item, atMs } of due) {
    const lateMs = atMs - startMs - Number(item);
    expect(lateMs).toBeGreaterThanOrEqual(0);
    expect(lateMs).toBeLessThanOrEqual(2 * deadlineWheelTickMs);
  }
  expect(clock.timers).toBe(0);
});

test("what was taken off is not due, and no timer is left for it", async () => {
  const { clock, due, wheel: deadlines } = wheel();
  const tick = deadlines.set("a", clock.now() + 500);
  deadlines.set("b", clock.now() + 500);
  deadlines.cancel("a", tick);
  deadlines.cancel("a", tick);
  await clock.advance(1000);
  expect(due.map(({ item }) => item)).toEqual(["b"]);
  deadlines.cancel("b", tick);
  expect(clock.timers).toBe(0);
});

test("after a stop everything that is over is due at once, and the rest at its time", async () => {
  const { clock, due, wheel: deadlines } = wheel();
  const startMs = clock.now();
  for (const delayMs of [20, 5000, 100_000]) deadlines.set(`${delayMs}`, startMs + delayMs);
  await clock.jump(60_000);
  expect(due.map(({ item }) => item)).toEqual(["20", "5000"]);
  await clock.advance(60_000);
  expect(due.map(({ item }) => item)).toEqual(["20", "5000", "100000"]);
});

test("one that is set while others are due counts from then", async () => {
  const clock = new FakeClock();
  const due: number[] = [];
  const deadlines: DeadlineWheel<{ again: boolean }> = new DeadlineWheel(clock, (item) => {
    due.push(clock.now());
    if (item.again) deadlines.set({ again: false }, clock.now());
  });
  deadlines.set({ again: true }, clock.now() + 50);
  await clock.advance(200);
  expect(due.length).toBe(2);
});
