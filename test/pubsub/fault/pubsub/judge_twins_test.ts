/** The judge where two processes use one client's state. */
import { expect, test } from "bun:test";
import { judge } from "./judge.ts";
import { gotNamed, Story } from "./story.ts";

const broken = (story: Story): string[] => judge(story.history).violations.map(({ invariant }) => invariant);
/** alice is subscribed, bob has put a1 and a2, and from now on two processes are alice. */
const twins = () =>
  new Story().subscribe("alice").put("bob", "a1", { ids: [1] }).put("bob", "a2", { ids: [2] }).state("alice", "shared");

test("an answer to the older of two processes of one client may cross the first of the newer, not later ones", () => {
  const story = twins();
  const older = story.invoke({ client: "alice", do: "get" });
  story.get("alice", ["a1:1", "a2:2"], { session: 2 });
  const late = { outcome: "ok", status: "OK", got: [gotNamed("a1:1")] } as const;
  expect(broken(story.return(older, late))).toEqual([]);
  expect(broken(story.return(story.invoke({ client: "alice", do: "get" }), late))).toContain("duplicated");
});

test("two processes of one state may both have what the server was not told of, and nothing else", () => {
  const story = twins().put("bob", "a3", { ids: [3] });
  story.get("alice", ["a1:1"]);
  story.get("alice", ["a2:2"], { last: 1 });
  story.get("alice", [], { session: 2, last: -1, had: false });
  story.get("alice", ["a2:2", "a3:3"], { session: 2, last: 1 });
  expect(broken(story).filter((invariant) => invariant !== "hidden")).toEqual([]);
  story.get("alice", ["a1:1"], { session: 3 });
  expect(broken(story)).toContain("duplicated");
});

test("the older of two processes does not know what the newer was given: its late answer has no mark", () => {
  const story = twins();
  const older = story.invoke({ client: "alice", do: "get", session: 1 });
  const both = { outcome: "ok", status: "OK", got: [gotNamed("a1:1"), gotNamed("a2:2")] } as const;
  const newer = story.invoke({ client: "alice", do: "get", session: 2 });
  story.return(newer, both).saw(newer, 2);
  expect(broken(story.return(older, both).saw(older, 2))).toEqual([]);
});

test("what the older of two processes was handed, the newer one's state does not know: it comes without a mark", () => {
  const story = twins();
  const older = story.invoke({ client: "alice", do: "get", session: 1 });
  story.get("alice", [], { session: 2, last: -1, had: false });
  const late = { outcome: "ok", status: "OK", got: [gotNamed("a1:1"), gotNamed("a2:2")] } as const;
  story.return(older, late).saw(older, 2);
  for (const isMarkOwed of [false, true]) {
    const newer = story.invoke({ client: "alice", do: "get", session: 2, last: -1 });
    story.return(newer, late).saw(newer, 2);
    expect(broken(story).includes("not marked")).toBe(isMarkOwed);
  }
});

/**
 * alice's older process unsubscribes and her newer one subscribes, at once; answered OK both. bob puts a3 and a4
 * meanwhile and after.
 */
function crossing(unsubscribes: number, subscribes: number): Story {
  const story = twins();
  story.get("alice", ["a1:1", "a2:2"], { session: 1 });
  const subscribe = story.invoke({ client: "alice", do: "subscribe", session: subscribes });
  const unsubscribe = story.invoke({ client: "alice", do: "unsubscribe", session: unsubscribes });
  story.put("bob", "a3", { ids: [3] });
  return story.return(unsubscribe, { outcome: "ok" }).return(subscribe, { outcome: "ok" }).put("bob", "a4", {
    ids: [4],
  });
}

test("of calls that cross, the older process's is the first: the server refuses it afterwards", () => {
  const begunAnew = crossing(1, 2);
  begunAnew.get("alice", ["a4:4"], { session: 2, last: -1 });
  expect(broken(begunAnew)).toEqual([]);
  expect(broken(crossing(1, 2))).toEqual(["lost"]);
  const ended = crossing(2, 1);
  expect(broken(ended)).toEqual([]);
  ended.get("alice", ["a4:4"], { session: 2, last: -1 });
  expect(broken(ended)).toContain("after unsubscribe");
});

test("what the older of two processes got while the newer one subscribed is of the subscription before", () => {
  const story = twins();
  const subscribe = story.invoke({ client: "alice", do: "subscribe", session: 2 });
  const unsubscribe = story.invoke({ client: "alice", do: "unsubscribe", session: 1 });
  story.get("alice", ["a1:1"], { session: 1 });
  story.return(unsubscribe, { outcome: "ok" }).return(subscribe, { outcome: "ok" });
  story.put("bob", "a3", { ids: [3] });
  story.get("alice", ["a3:3"], { session: 2, last: -1 });
  expect(broken(story)).toEqual([]);
});
