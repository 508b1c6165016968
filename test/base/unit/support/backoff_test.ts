import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { backoffMs, retryWithBackoff } from "../../../../src/base/support/backoff.ts";
import { FakeClock, settled } from "../../../support/fake_clock.ts";
import { property } from "../../../support/property.ts";

const nearlyOne = 1 - Number.EPSILON;
const longest = (attempt: number) => backoffMs(attempt, { firstMs: 100, maxMs: 5000, jitter: 1 }, () => nearlyOne);

test("the longest possible wait doubles up to its limit", () => {
  expect([0, 1, 2, 5, 6, 100, Infinity].map((attempt) => Math.round(longest(attempt)))).toEqual(
    [100, 200, 400, 3200, 5000, 5000, 5000],
  );
});

property(
  "a wait is never negative, nor longer than the limit",
  fc.tuple(fc.nat(10_000), fc.double({ min: 0, max: nearlyOne, noNaN: true }), fc.integer({ min: 1, max: 10_000 })),
  ([attempt, random, maxMs]) => {
    const wait = backoffMs(attempt, { firstMs: 50, maxMs, jitter: 1 }, () => random);
    expect(wait).toBeGreaterThanOrEqual(0);
    expect(wait).toBeLessThanOrEqual(maxMs);
  },
);

test("two clients do not wait equally long", () => {
  const waits = Array.from({ length: 20 }, () => backoffMs(3, { firstMs: 100, maxMs: 5000, jitter: 1 }));
  expect(new Set(waits).size).toBeGreaterThan(1);
});

test("half of a wait with half jitter is certain", () => {
  const shortest = backoffMs(2, { firstMs: 1000, maxMs: 30_000, jitter: 0.5 }, () => 0);
  expect(shortest).toBe(2000);
});

describe("retry", () => {
  const backoff = { firstMs: 100, maxMs: 1000, jitter: 0 };

  test("repeats after growing pauses until the work succeeds; work done in part shortens the next pause", async () => {
    const clock = new FakeClock();
    const startedMs: number[] = [];
    const work = async (succeeded: () => void) => {
      startedMs.push(clock.now());
      await Promise.resolve();
      if (startedMs.length === 3) succeeded();
      if (startedMs.length < 5) throw new Error("not yet");
      return "done";
    };
    const failures: number[] = [];
    const mayRetry = (_: unknown, count: number) => failures.push(count) > 0;
    const result = retryWithBackoff(work, { clock, backoff, mayRetry });
    for (let step = 0; step < 10; step++) {
      await clock.advance(100);
    }
    expect(await result).toBe("done");
    expect(startedMs.map((ms) => ms - (startedMs[0] ?? 0))).toEqual([0, 100, 300, 400, 600]);
    expect(failures).toEqual([0, 1, 0, 1]);
  });

  test("rejects with a failure that no attempt can help, and with the signal's reason", async () => {
    const clock = new FakeClock();
    const stop = new AbortController();
    const fail = () => Promise.reject(new Error("refused"));
    await expect(retryWithBackoff(fail, { clock, backoff, mayRetry: () => false })).rejects.toThrow("refused");
    const waiting = retryWithBackoff(fail, { clock, backoff, signal: stop.signal, mayRetry: () => true });
    await settled();
    stop.abort(new Error("stopped"));
    await expect(waiting).rejects.toThrow("stopped");
  });
});
