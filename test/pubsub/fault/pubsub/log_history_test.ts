import { expect, test } from "bun:test";
import { judgeLogs } from "./log_history.ts";
import { Story } from "./story.ts";

/** alice is subscribed and has had a1; bob has put a1, a2 and a3. */
function told(): Story {
  const story = new Story().subscribe("alice");
  for (const number of [1, 2, 3]) story.put("bob", `a${number}`, { ids: [number] });
  story.get("alice", ["a1:1"]);
  return story;
}

const verdictOf = (story: Story) => {
  const { partitions, failures } = judgeLogs(story.history);
  return { operations: partitions.reduce((sum, one) => sum + one.operations, 0), failures };
};
const broken = [expect.stringContaining("not linearizable")];

test("gets that return what follows their place, in one order, fit a log", () => {
  const story = told();
  story.get("alice", ["a2:2"], { last: 1 });
  story.put("bob", "a4", { outcome: "unknown" }).put("bob", "a5", { outcome: "unknown" });
  story.get("alice", ["a3:3", "a5:4"], { last: 2 });
  story.get("alice", [], { last: 4 });
  expect(verdictOf(story)).toEqual({ operations: 8, failures: [] }); // not alice's first get, which names no place
});

test("a message that was put again after a lost response is one entry", () => {
  const story = told();
  story.put("bob", "a4", { outcome: "unknown" }).put("bob", "a4", { ids: [4] }, { resumed: true });
  story.get("alice", ["a2:2", "a3:3", "a4:4"], { last: 1 });
  expect(verdictOf(story)).toEqual({ operations: 5, failures: [] });
});

test("a get that leaves out a message that was stored before it fits no log", () => {
  const story = told();
  story.get("alice", ["a3:3"], { last: 1 });
  expect(verdictOf(story).failures).toEqual(broken);
});

test("a get without messages behind one that was stored fits no log", () => {
  const story = told();
  story.get("alice", [], { last: 2 });
  expect(verdictOf(story).failures).toEqual(broken);
});

test("two readers who have different messages under one id fit no log", () => {
  const story = told().subscribe("carol").put("bob", "a4", { outcome: "unknown" });
  story.get("alice", ["a2:2", "a3:3"], { last: 1 });
  story.get("carol", ["a2:2", "a4:3"], { last: 1 });
  expect(verdictOf(story).failures).toEqual(broken);
});

test("a message that is had before it was put fits no log", () => {
  const story = told();
  story.get("alice", ["a2:2", "a3:3", "a4:4"], { last: 1 });
  story.put("bob", "a4", { ids: [4] });
  expect(verdictOf(story).failures).toEqual(broken);
});

test("topics with gaps, and readers whose state was lost, are left out", () => {
  const passed = told().passedOver("alice", 1, ["a3:3"], 1);
  expect(verdictOf(passed)).toEqual({ operations: 0, failures: [] });
  const restored = told().state("alice", "restored");
  restored.get("alice", ["a3:3"], { last: 1 });
  expect(verdictOf(restored)).toEqual({ operations: 3, failures: [] });
  const lost = told().loss(3);
  lost.get("alice", ["a3:3"], { last: 1 });
  expect(verdictOf(lost)).toEqual({ operations: 0, failures: [] });
});
