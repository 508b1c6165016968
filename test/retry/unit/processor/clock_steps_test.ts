import { expect, test } from "bun:test";
import { WallClockStepDetector } from "../../../../src/retry/processor/store_processor.ts";

test("a wall clock that is set is noticed once, in both directions; one that goes with time, or nearly, is not", () => {
  const steps = new WallClockStepDetector(1000, 5_000_000);
  expect([
    steps.stepSinceLastCheck(2000, 5_001_000),
    steps.stepSinceLastCheck(3000, 5_002_400),
    steps.stepSinceLastCheck(4000, 5_003_001),
  ]).toEqual([0, 0, 0]);
  expect([steps.stepSinceLastCheck(5000, 5_004_000 - 471_000), steps.stepSinceLastCheck(6000, 5_005_000 - 471_000)])
    .toEqual([
      -471_000,
      0,
    ]);
  expect([steps.stepSinceLastCheck(7000, 5_006_000), steps.stepSinceLastCheck(8000, 5_007_000)]).toEqual([471_000, 0]);
});

test("one that is put right slowly is noticed when it has gone far", () => {
  const steps = new WallClockStepDetector(0, 0);
  const seen = Array.from({ length: 30 }, (_, second) => steps.stepSinceLastCheck(second * 1000, second * 1050));
  expect(seen.filter((byMs) => byMs !== 0)).toEqual([1000]);
});
