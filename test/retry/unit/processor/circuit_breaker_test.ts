import { expect, test } from "bun:test";
import * as fc from "fast-check";
import {
  type Breaker,
  breakerAfterCall,
  breakerAfterCallStart,
  breakerCallsAllowed,
  closedBreaker,
  nextBreakerProbeMs,
} from "../../../../src/retry/processor/circuit_breaker.ts";
import {
  initialRateBucket,
  nextRateTokenAtMs,
  parseRate,
  refilledBucket,
} from "../../../../src/retry/queue/rate_limit.ts";
import { property } from "../../../support/property.ts";

const options = { failuresMax: 3, resetMs: 100 };
const end = (breaker: Breaker, isHealthy: boolean | null, nowMs: number, isProbe = false) =>
  breakerAfterCall(breaker, { isHealthy, isProbe, nowMs }, options);
const opened = (): Breaker => [1, 2, 3].reduce<Breaker>((breaker, at) => end(breaker, false, at), closedBreaker);

test("failures in a row open it, a success in between begins the count again", () => {
  const interrupted = [false, false, true, false, false].reduce<Breaker>(
    (one, isHealthy) => end(one, isHealthy, 1),
    closedBreaker,
  );
  expect(interrupted).toEqual({ kind: "closed", failures: 2 });
  expect(opened()).toEqual({ kind: "open", untilMs: 103 });
});

test("open, it lets nobody through; then one probe, whose end decides", () => {
  const open = opened();
  expect([breakerCallsAllowed(open, 102), breakerCallsAllowed(open, 103)]).toEqual([0, 1]);
  const probing = breakerAfterCallStart(open);
  expect(breakerCallsAllowed(probing, 1000)).toBe(0);
  expect(end(probing, true, 110, true)).toEqual(closedBreaker);
  expect(end(probing, false, 110, true)).toEqual({ kind: "open", untilMs: 210 });
  expect(end(probing, null, 110, true)).toEqual({ kind: "open", untilMs: 110 });
});

test("calls that began before it opened neither open nor close it", () => {
  expect(end(opened(), true, 50)).toEqual(opened());
  expect(end(breakerAfterCallStart(opened()), true, 50)).toEqual({ kind: "half_open" });
  expect(nextBreakerProbeMs(opened())).toBe(103);
});

test("without a limit it never opens", () => {
  let breaker: Breaker = closedBreaker;
  for (let at = 0; at < 100; at++) {
    breaker = breakerAfterCall(breaker, { isHealthy: false, isProbe: false, nowMs: at }, {
      failuresMax: 0,
      resetMs: 1,
    });
  }
  expect(breakerCallsAllowed(breaker, 0)).toBe(Infinity);
});

property(
  "a rate is never exceeded in any second, but for the token one starts with",
  fc.record({
    count: fc.integer({ min: 1, max: 50 }),
    steps: fc.array(fc.integer({ min: 0, max: 400 }), { maxLength: 200 }),
  }),
  ({ count, steps }) => {
    const rate = { count, perMs: 1000 };
    let bucket = initialRateBucket(0), nowMs = 0, taken = 0;
    for (const step of steps) {
      nowMs += step;
      bucket = refilledBucket(bucket, rate, nowMs);
      while (nextRateTokenAtMs(bucket, rate) <= nowMs && bucket.tokens >= 1) {
        bucket = { ...bucket, tokens: bucket.tokens - 1 };
        taken++;
      }
      expect(taken).toBeLessThanOrEqual(1 + Math.ceil((nowMs * count) / 1000));
    }
  },
);

test("a rate is written as a number and a time", () => {
  expect(parseRate("10/s")).toEqual({ count: 10, perMs: 1000 });
  expect(parseRate("5/250ms")).toEqual({ count: 5, perMs: 250 });
  for (const text of ["10", "0/s", "x/s", "10/", "10/0s", "-1/s"]) {
    expect(() => parseRate(text)).toThrow(/rate|duration/);
  }
});
