import { expect, test } from "bun:test";
import {
  awaitAnswer,
  isStepGenerator,
  runSteps,
  runStepsNow,
  type StepGenerator,
  type ValueOrPromise,
} from "../../../../src/base/support/steps.ts";

function* sum(first: ValueOrPromise<number>, second: ValueOrPromise<number>): StepGenerator<number> {
  return (yield* awaitAnswer(first)) + (yield* awaitAnswer(second));
}

test("work whose answers are there runs to its end, and work that would have to wait is an error there", () => {
  expect(runStepsNow(sum(1, 2))).toBe(3);
  expect(() => runStepsNow(sum(1, Promise.resolve(2)))).toThrow("had to be waited for");
});

test("work waits for each answer that is a promise, in order", async () => {
  expect(await runSteps(sum(Promise.resolve(1), Promise.resolve(2)))).toBe(3);
});

test("a rejection is thrown where the answer is waited for, and the work may go on", async () => {
  function* careful(answer: ValueOrPromise<number>): StepGenerator<string> {
    try {
      return String(yield* awaitAnswer(answer));
    } catch (error) {
      return `refused: ${(error as Error).message}`;
    }
  }
  expect(await runSteps(careful(Promise.reject(new Error("cut"))))).toBe("refused: cut");
  await expect(runSteps(sum(1, Promise.reject(new Error("cut"))))).rejects.toThrow("cut");
});

test("only a generator counts as work", () => {
  expect(isStepGenerator(sum(1, 2))).toBe(true);
  for (const result of [undefined, null, 3, [1], new Map(), Promise.resolve(1)]) {
    expect(isStepGenerator(result)).toBe(false);
  }
});
