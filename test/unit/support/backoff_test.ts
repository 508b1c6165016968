import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { backoffMs } from "../../../src/support/backoff.ts";
import { property } from "../../support/property.ts";

const nearlyOne = 1 - Number.EPSILON;
const longest = (attempt: number) => backoffMs(attempt, { firstMs: 100, maxMs: 5000, random: () => nearlyOne });

test("the longest possible wait doubles up to its limit", () => {
  expect([0, 1, 2, 5, 6, 100, Infinity].map((attempt) => Math.round(longest(attempt)))).toEqual(
    [100, 200, 400, 3200, 5000, 5000, 5000],
  );
});

property(
  "a wait is never negative, nor longer than the limit",
  fc.tuple(fc.nat(10_000), fc.double({ min: 0, max: nearlyOne, noNaN: true }), fc.integer({ min: 1, max: 10_000 })),
  ([attempt, random, maxMs]) => {
    const wait = backoffMs(attempt, { firstMs: 50, maxMs, random: () => random });
    expect(wait).toBeGreaterThanOrEqual(0);
    expect(wait).toBeLessThanOrEqual(maxMs);
  },
);

test("two clients do not wait equally long", () => {
  const waits = Array.from({ length: 20 }, () => backoffMs(3, { firstMs: 100, maxMs: 5000 }));
  expect(new Set(waits).size).toBeGreaterThan(1);
});
