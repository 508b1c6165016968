import { expect, test } from "bun:test";
import {
  awaitRowsAnswer,
  DataNotLoaded,
  isStoreSteps,
  runStoreSteps,
  runStoreStepsNow,
  type StoreSteps,
  withLoadedData,
} from "../../../../../src/pubsub/store/rows/store_steps.ts";
import type { MissingTopicData, RowsAnswer } from "../../../../../src/pubsub/store/rows/topic_rows.ts";

function* sum(first: RowsAnswer<number>, second: RowsAnswer<number>): StoreSteps<number> {
  return (yield* awaitRowsAnswer(first)) + (yield* awaitRowsAnswer(second));
}

test("work whose answers are there runs to its end, and work that would have to wait is an error there", () => {
  expect(runStoreStepsNow(sum(1, 2))).toBe(3);
  expect(() => runStoreStepsNow(sum(1, Promise.resolve(2)))).toThrow("had to be waited for");
});

test("work waits for each answer that is a promise, in order", async () => {
  expect(await runStoreSteps(sum(Promise.resolve(1), Promise.resolve(2)))).toBe(3);
});

test("a rejection is thrown where the answer is waited for, and the work may go on", async () => {
  function* careful(answer: RowsAnswer<number>): StoreSteps<string> {
    try {
      return String(yield* awaitRowsAnswer(answer));
    } catch (error) {
      return `refused: ${(error as Error).message}`;
    }
  }
  expect(await runStoreSteps(careful(Promise.reject(new Error("cut"))))).toBe("refused: cut");
  await expect(runStoreSteps(sum(1, Promise.reject(new Error("cut"))))).rejects.toThrow("cut");
});

test("work that lacks data is done again when the data is there, and other errors are its own", async () => {
  const loaded: MissingTopicData[] = [];
  const rows = { load: (lacks: readonly MissingTopicData[]) => Promise.resolve(void loaded.push(...lacks)) };
  const lacks: MissingTopicData[] = [1, 2].map((topicId) => ({ kind: "firstStored", topicId }));
  const work = () => {
    const lack = lacks[loaded.length];
    if (lack !== undefined) throw new DataNotLoaded(lack);
    return "done";
  };
  expect(await runStoreSteps(withLoadedData(rows, work))).toBe("done");
  expect(loaded).toEqual(lacks);
  const failing = withLoadedData(rows, () => {
    throw new Error("a bug");
  });
  await expect(runStoreSteps(failing)).rejects.toThrow("a bug");
});

test("only a generator counts as work", () => {
  expect(isStoreSteps(sum(1, 2))).toBe(true);
  for (const result of [undefined, null, 3, [1], new Map(), Promise.resolve(1)]) {
    expect(isStoreSteps(result)).toBe(false);
  }
});
