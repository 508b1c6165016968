import { expect, test } from "bun:test";
import {
  awaitAnswer,
  isSteps,
  NotLoaded,
  runNow,
  runSteps,
  type Steps,
  withData,
} from "../../../../../src/pubsub/store/rows/store_steps.ts";
import type { Answer, Lack } from "../../../../../src/pubsub/store/rows/topic_rows.ts";

function* sum(first: Answer<number>, second: Answer<number>): Steps<number> {
  return (yield* awaitAnswer(first)) + (yield* awaitAnswer(second));
}

test("work whose answers are there runs to its end, and work that would have to wait is an error there", () => {
  expect(runNow(sum(1, 2))).toBe(3);
  expect(() => runNow(sum(1, Promise.resolve(2)))).toThrow("had to be waited for");
});

test("work waits for each answer that is a promise, in order", async () => {
  expect(await runSteps(sum(Promise.resolve(1), Promise.resolve(2)))).toBe(3);
});

test("a rejection is thrown where the answer is waited for, and the work may go on", async () => {
  function* careful(answer: Answer<number>): Steps<string> {
    try {
      return String(yield* awaitAnswer(answer));
    } catch (error) {
      return `refused: ${(error as Error).message}`;
    }
  }
  expect(await runSteps(careful(Promise.reject(new Error("cut"))))).toBe("refused: cut");
  await expect(runSteps(sum(1, Promise.reject(new Error("cut"))))).rejects.toThrow("cut");
});

test("work that lacks data is done again when the data is there, and other errors are its own", async () => {
  const loaded: Lack[] = [];
  const rows = { load: (lacks: readonly Lack[]) => Promise.resolve(void loaded.push(...lacks)) };
  const lacks: Lack[] = [1, 2].map((topicId) => ({ kind: "firstStored", topicId }));
  const work = () => {
    const lack = lacks[loaded.length];
    if (lack !== undefined) throw new NotLoaded(lack);
    return "done";
  };
  expect(await runSteps(withData(rows, work))).toBe("done");
  expect(loaded).toEqual(lacks);
  const failing = withData(rows, () => {
    throw new Error("a bug");
  });
  await expect(runSteps(failing)).rejects.toThrow("a bug");
});

test("only a generator counts as work", () => {
  expect(isSteps(sum(1, 2))).toBe(true);
  for (const result of [undefined, null, 3, [1], new Map(), Promise.resolve(1)]) expect(isSteps(result)).toBe(false);
});
