import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import {
  decideNextTry,
  redeliveryDelayMs,
  retryAfterMsMax,
  type RetryPolicy,
} from "../../../../src/retry/queue/retry_policy.ts";
import { property } from "../../../support/property.ts";
import { seededRandom } from "../../../support/random.ts";

const base: RetryPolicy = {
  maxRetries: 10,
  backoff: "fixed",
  intervalMs: 3000,
  delaysMs: [],
  maxDelayMs: 3_600_000,
  jitter: "none",
  maxElapsedMs: null,
};
const half = () => 0.5;
const schedule = (policy: RetryPolicy, count: number) =>
  Array.from({ length: count }, (_, at) => redeliveryDelayMs(policy, at + 1, half));

const policies: fc.Arbitrary<RetryPolicy> = fc.record({
  maxRetries: fc.integer({ min: 0, max: 50 }),
  backoff: fc.constantFrom("fixed", "linear", "exponential", "list"),
  intervalMs: fc.integer({ min: 0, max: 100_000 }),
  delaysMs: fc.array(fc.integer({ min: 0, max: 100_000 }), { minLength: 1, maxLength: 5 }),
  maxDelayMs: fc.integer({ min: 0, max: 1_000_000 }),
  jitter: fc.constantFrom("none", "full", "equal"),
  maxElapsedMs: fc.option(fc.integer({ min: 0, max: 10_000_000 })),
});

describe("the delay before a redelivery", () => {
  test("is the interval each time, as in the article", () => {
    expect(schedule(base, 4)).toEqual([3000, 3000, 3000, 3000]);
  });

  test("grows by the interval, doubles, or is on the list, whose last counts for all that follow", () => {
    expect(schedule({ ...base, backoff: "linear" }, 4)).toEqual([3000, 6000, 9000, 12_000]);
    expect(schedule({ ...base, backoff: "exponential" }, 4)).toEqual([3000, 6000, 12_000, 24_000]);
    expect(schedule({ ...base, backoff: "list", delaysMs: [1, 20, 300] }, 5)).toEqual([1, 20, 300, 300, 300]);
  });

  test("is no longer than the limit, however often it doubles", () => {
    expect(redeliveryDelayMs({ ...base, backoff: "exponential" }, 5000, half)).toBe(3_600_000);
  });

  property(
    "is a whole number within its jitter's bounds, and the same again from the same seed",
    fc.tuple(policies, fc.integer({ min: 1, max: 2000 }), fc.integer()),
    ([policy, redelivery, seed]) => {
      const plain = redeliveryDelayMs({ ...policy, jitter: "none" }, redelivery, half);
      const delay = redeliveryDelayMs(policy, redelivery, seededRandom(seed));
      expect(delay).toBe(redeliveryDelayMs(policy, redelivery, seededRandom(seed)));
      expect(Number.isInteger(delay)).toBe(true);
      expect(delay).toBeLessThanOrEqual(Math.min(plain, policy.maxDelayMs));
      const least = policy.jitter === "none" ? plain : policy.jitter === "equal" ? Math.floor(plain / 2) : 0;
      expect(delay).toBeGreaterThanOrEqual(least);
    },
  );
});

describe("the next try", () => {
  const at = { sinceMs: 0, nowMs: 1000, retryAfterMs: null };

  test("N redeliveries are N + 1 tries in all", () => {
    expect(decideNextTry({ ...base, maxRetries: 2 }, { ...at, tries: 2 }, half)).toEqual({ kind: "at", atMs: 4000 });
    expect(decideNextTry({ ...base, maxRetries: 2 }, { ...at, tries: 3 }, half)).toEqual({
      kind: "never",
      reason: "exhausted",
    });
    expect(decideNextTry({ ...base, maxRetries: 0 }, { ...at, tries: 1 }, half)).toEqual({
      kind: "never",
      reason: "exhausted",
    });
  });

  test("begins no later than the time a message is given", () => {
    const policy = { ...base, maxElapsedMs: 4000 };
    expect(decideNextTry(policy, { ...at, tries: 1 }, half)).toEqual({ kind: "at", atMs: 4000 });
    expect(decideNextTry(policy, { ...at, nowMs: 1001, tries: 1 }, half)).toEqual({ kind: "never", reason: "too_old" });
  });

  test("waits as long as the other side asks, up to a day, and never shorter than the policy says", () => {
    const asked = (retryAfterMs: number) => decideNextTry(base, { ...at, tries: 1, retryAfterMs }, half);
    expect(asked(1)).toEqual({ kind: "at", atMs: 4000 });
    expect(asked(60_000)).toEqual({ kind: "at", atMs: 61_000 });
    expect(asked(1e15)).toEqual({ kind: "at", atMs: 1000 + retryAfterMsMax });
  });

  property(
    "there are at most N + 1 tries, and no gap is shorter than the policy says",
    fc.tuple(policies, fc.integer()),
    ([policy, seed]) => {
      const [random, replay] = [seededRandom(seed), seededRandom(seed)];
      let nowMs = 0, tries = 0;
      for (;;) {
        tries++;
        const next = decideNextTry(policy, { tries, sinceMs: 0, nowMs, retryAfterMs: null }, random);
        if (next.kind === "never") break;
        expect(next.atMs - nowMs).toBe(redeliveryDelayMs(policy, tries, replay));
        nowMs = next.atMs;
      }
      expect(tries).toBeLessThanOrEqual(policy.maxRetries + 1);
      if (policy.maxElapsedMs === null) expect(tries).toBe(policy.maxRetries + 1);
      else expect(nowMs).toBeLessThanOrEqual(policy.maxElapsedMs);
    },
  );
});
