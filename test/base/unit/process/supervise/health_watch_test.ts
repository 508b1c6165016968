import { expect, test } from "bun:test";
import { type HealthWatchOptions, watchCommandHealth } from "../../../../../src/base/process/supervise/health_watch.ts";
import { FakeClock } from "../../../../support/fake_clock.ts";

function start(answers: (string | null)[], overrides: Partial<HealthWatchOptions> = {}) {
  const clock = new FakeClock();
  const over = new AbortController();
  const told: [string, number][] = [];
  let checks = 0;
  const result: { current: string | null | undefined } = { current: undefined };
  watchCommandHealth({
    intervalMs: 1000,
    timeoutMs: 500,
    failuresMax: 3,
    clock,
    signal: over.signal,
    isFrozen: () => false,
    check: () => Promise.resolve(answers[checks++] ?? null),
    onFailure: (what, inARow) => told.push([what, inARow]),
    ...overrides,
  }).then((what) => result.current = what);
  return { clock, over, told, result, checks: () => checks };
}

test("only failures in a row are too many", async () => {
  const { clock, told, result } = start(["a", "b", null, "c", "d", "e"]);
  for (let seconds = 0; seconds < 5; seconds++) await clock.advance(1000);
  expect(result.current).toBeUndefined();
  await clock.advance(1000);
  expect(result.current).toBe("e");
  expect(told).toEqual([["a", 1], ["b", 2], ["c", 1], ["d", 2], ["e", 3]]);
});

test("a check that takes too long is ended and has failed", async () => {
  const check = (signal: AbortSignal) =>
    new Promise<string | null>((resolve) => signal.addEventListener("abort", () => resolve("was ended by SIGKILL")));
  const { clock, result } = start([], { check, failuresMax: 1 });
  await clock.advance(1000);
  await clock.advance(500);
  expect(result.current).toBe("did not end within 500 ms");
});

test("a job that is frozen is not asked, and no answer of it counts", async () => {
  let frozen = true;
  const { clock, checks, result } = start(["a", "b"], { isFrozen: () => frozen, failuresMax: 1 });
  await clock.advance(1000);
  expect(checks()).toBe(0);
  frozen = false;
  await clock.advance(1000);
  expect(result.current).toBe("a");
});

test("nobody is asked any more after the end", async () => {
  const { clock, over, checks, result } = start(["a"]);
  over.abort();
  await clock.advance(5000);
  expect([checks(), result.current]).toEqual([0, null]);
});
