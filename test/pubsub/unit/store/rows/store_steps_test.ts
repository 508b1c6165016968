import { expect, test } from "bun:test";
import {
  awaitAnswer,
  DataNotLoaded,
  isStoreSteps,
  runSteps,
  runStepsNow,
  type StoreSteps,
  withLoadedData,
} from "../../../../../src/pubsub/store/rows/store_steps.ts";
import type { MissingData, RowsAnswer } from "../../../../../src/pubsub/store/rows/topic_rows.ts";

function* sum(first: RowsAnswer<number>, second: RowsAnswer<number>): StoreSteps<number> {
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
  function* careful(answer: RowsAnswer<number>): StoreSteps<string> {
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
  const loaded: MissingData[] = [];
  const rows = { load: (lacks: readonly MissingData[]) => Promise.resolve(void loaded.push(...lacks)) };
  const lacks: MissingData[] = [1, 2].map((topicId) => ({ kind: "firstStored", topicId }));
  const work = () => {
    const lack = lacks[loaded.length];
    if (lack !== undefined) throw new DataNotLoaded(lack);
    return "done";
  };
  expect(await runSteps(withLoadedData(rows, work))).toBe("done");
  expect(loaded).toEqual(lacks);
  const failing = withLoadedData(rows, () => {
    throw new Error("a bug");
  });
  await expect(runSteps(failing)).rejects.toThrow("a bug");
});

test("only a generator counts as work", () => {
  expect(isStoreSteps(sum(1, 2))).toBe(true);
  for (const result of [undefined, null, 3, [1], new Map(), Promise.resolve(1)]) {
    expect(isStoreSteps(result)).toBe(false);
  }
});
