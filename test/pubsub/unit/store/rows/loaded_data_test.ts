import { expect, test } from "bun:test";
import { runSteps } from "../../../../../src/base/support/steps.ts";
import { DataNotLoadedError, runWithLoadedData } from "../../../../../src/pubsub/store/rows/loaded_data.ts";
import type { MissingTopicData } from "../../../../../src/pubsub/store/rows/topic_rows.ts";

test("work that lacks data is done again when the data is there, and other errors are its own", async () => {
  const loaded: MissingTopicData[] = [];
  const rows = { load: (lacks: readonly MissingTopicData[]) => Promise.resolve(void loaded.push(...lacks)) };
  const lacks: MissingTopicData[] = [1, 2].map((topicId) => ({ kind: "firstStored", topicId }));
  const work = () => {
    const lack = lacks[loaded.length];
    if (lack !== undefined) throw new DataNotLoadedError(lack);
    return "done";
  };
  expect(await runSteps(runWithLoadedData(rows, work))).toBe("done");
  expect(loaded).toEqual(lacks);
  const failing = runWithLoadedData(rows, () => {
    throw new Error("a bug");
  });
  await expect(runSteps(failing)).rejects.toThrow("a bug");
});
