/** What leads from one state of a topic to another, and what requests and operators are told in each. */
import { expect, test } from "bun:test";
import type { TopicAction, TopicDecisionFacts } from "../../../../src/pubsub/ownership/topic_decision.ts";
import type { TopicNode } from "../../../../src/pubsub/ownership/topic_node.ts";
import {
  firstTopicState,
  isTopicInTransfer,
  topicAvailabilityIn,
  topicHandoffResult,
  type TopicState,
  topicStateAfterCall,
  topicStateAfterClose,
  topicStateAfterDecision,
  topicStateAfterFailure,
  whyTopicNotServed,
} from "../../../../src/pubsub/ownership/topic_state.ts";

const node: TopicNode = { owner: "s1", epoch: 4, state: "stored", incarnation: "b", baseOffset: 0, source: null };
const copy = { incarnation: "b", baseOffset: 0, epoch: 4, sealedFor: null };
const facts: TopicDecisionFacts = { me: "s1", node, copy, staged: null, shared: null };
const lease = { isConfirmed: () => true };
const served: TopicState & { readonly kind: "served" } = {
  kind: "served",
  permit: { epoch: 4, incarnation: "b", lease },
};
const handingOff: TopicState = { kind: "handing off", deadlineMs: 30 };
const resting: readonly TopicState[] = [{ kind: "waiting" }, { kind: "elsewhere" }, { kind: "missing" }];
const all: readonly TopicState[] = [firstTopicState, served, handingOff, { kind: "receiving" }, ...resting];
/** Actions after which the topic is decided about again. */
const work: readonly TopicAction["do"][] = [
  "register",
  "write",
  "create",
  "activate",
  "drop",
  "release",
  "discard",
  "set aside",
  "read again",
];

function decide(state: TopicState, action: TopicAction["do"], other: Partial<TopicDecisionFacts> = {}): TopicState {
  return topicStateAfterDecision(state, action, { facts: { ...facts, ...other }, lease, deadlineMs: 100 });
}

test("a decision to serve leads from each state to served, with a permit for the stored copy", () => {
  for (const state of all) expect(decide(state, "serve")).toEqual(served);
});

test("a permit is kept while epoch and content are the same", () => {
  expect(decide(served, "serve")).toBe(served);
  expect(decide(served, "serve", { copy: { ...copy, epoch: 5 } })).toMatchObject({ permit: { epoch: 5 } });
  expect(decide(served, "serve", { copy: { ...copy, incarnation: "c" } })).toMatchObject({
    permit: { incarnation: "c" },
  });
});

test("each decision except serve ends the admission of requests", () => {
  for (const action of [...work, "hand off", "none", "missing"] as const) {
    expect(decide(served, action).kind).not.toBe("served");
  }
});

test("work that a handoff needs does not end it, and from other states it leads to unsettled", () => {
  for (const action of work) {
    expect(decide(handingOff, action)).toBe(handingOff);
    for (const state of [firstTopicState, served, ...resting]) {
      expect(decide(state, action)).toEqual({ kind: "unsettled" });
    }
  }
});

test("a handoff has one deadline from the seal until the topic is served again, over any number of calls", () => {
  const begun = decide(served, "hand off");
  expect(begun).toEqual({ kind: "handing off", deadlineMs: 100 });
  const later: TopicState = { kind: "unsettled", deadlineMs: 30 };
  expect(topicStateAfterCall(handingOff)).toEqual(later);
  expect(decide(later, "read again")).toEqual(later);
  expect(decide(later, "hand off")).toEqual(handingOff);
  expect(decide(topicStateAfterFailure(handingOff, "cut off"), "hand off")).toEqual(handingOff);
  expect(decide(decide(handingOff, "serve"), "hand off")).toEqual(begun);
});

test("without anything to do a topic waits if data is left for another server, and is elsewhere otherwise", () => {
  expect(decide(firstTopicState, "none")).toEqual({ kind: "waiting" });
  const nothing = { copy: null };
  expect(decide(firstTopicState, "none", nothing)).toEqual({ kind: "elsewhere" });
  const staged = { incarnation: "b", owner: "s2", epoch: 4 };
  expect(decide(firstTopicState, "none", { copy: null, staged })).toEqual({ kind: "waiting" });
});

test("rows of a shared store are left there only if another store has the topic", () => {
  const rows = { copy: null, unopened: copy, shared: { store: "db", isOwnerThere: true } };
  expect(decide(firstTopicState, "none", rows)).toEqual({ kind: "waiting" });
  expect(decide(firstTopicState, "none", { ...rows, node: { ...node, store: "db" } })).toEqual({ kind: "elsewhere" });
  expect(decide(firstTopicState, "none", { ...rows, unopened: null })).toEqual({ kind: "elsewhere" });
});

test("closed, a topic admits no request, and nothing else changes", () => {
  for (const state of all) {
    expect(topicStateAfterClose(state)).toEqual(state === served ? { kind: "unsettled" } : state);
  }
});

test("what a database refuses is told until the next decision, but not of a served topic", () => {
  expect(topicStateAfterFailure(served, "cut off")).toBe(served);
  const failed = topicStateAfterFailure({ kind: "missing" }, "cut off");
  expect(failed).toEqual({ kind: "unsettled", problem: "cut off" });
  expect(topicAvailabilityIn(failed, node, "s1")).toEqual({ kind: "moving", why: "cut off" });
  expect(whyTopicNotServed(failed)).toBe("cut off");
  expect(decide(failed, "create")).toEqual({ kind: "unsettled" });
});

test("a request waits for the call that is running, but not for one that sends or receives content", () => {
  expect(all.filter(isTopicInTransfer).map(({ kind }) => kind)).toEqual(["handing off", "receiving"]);
  expect(all.map(topicStateAfterCall).filter(isTopicInTransfer)).toEqual([{ kind: "receiving" }]);
});

test("a request is told who has the topic by the node, and by the state only if the node names this server", () => {
  const mine = { kind: "moving" } as const;
  expect(all.map((state) => topicAvailabilityIn(state, node, "s1"))).toEqual([
    mine,
    { kind: "serving", permit: served.permit },
    mine,
    mine,
    mine,
    mine,
    { kind: "missing" },
  ]);
  for (const state of all.filter((other) => other !== served)) {
    expect(topicAvailabilityIn(state, node, "s2")).toEqual({ kind: "elsewhere", owner: "s1", epoch: 4 });
    expect(topicAvailabilityIn(state, undefined, "s2")).toEqual({ kind: "unassigned" });
  }
});

test("an operator is told why a topic was not handed off: its data, the receiver, or the owner that it has", () => {
  expect(whyTopicNotServed({ kind: "missing" })).toBe("this server does not have its data");
  expect(whyTopicNotServed({ kind: "elsewhere" })).toBe("this server does not serve it");
  expect(topicHandoffResult("s2", { ...node, owner: "s2", epoch: 5 }, "late")).toEqual({ kind: "moved", epoch: 5 });
  expect(topicHandoffResult("s2", node, "no room")).toEqual({ kind: "kept", why: "no room" });
  expect(topicHandoffResult("s2", node, "")).toEqual({ kind: "kept", why: 'its node names the owner "s1"' });
});
