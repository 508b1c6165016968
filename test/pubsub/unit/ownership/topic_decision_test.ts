import { expect, test } from "bun:test";
import {
  decideTopic,
  decideTopicHandoff,
  decideTopicTransfer,
  type TopicDecisionFacts,
} from "../../../../src/pubsub/ownership/topic_decision.ts";
import {
  messageIdsPerIncarnation,
  type TopicNode,
  topicNodeAfterAssignment,
  topicNodeAfterConfirmation,
  topicNodeAfterForget,
  topicNodeAfterReassignment,
  topicNodeAfterReturn,
  topicNodeAfterTakeBack,
  topicNodeAfterTakeover,
  topicNodeAfterTransfer,
} from "../../../../src/pubsub/ownership/topic_node.ts";

const stored: TopicNode = { owner: "s1", epoch: 4, state: "stored", incarnation: "b", baseOffset: 0, source: null };
const open = { incarnation: "b", baseOffset: 0, epoch: 4, sealedFor: null };
const sealed = { ...open, sealedFor: "s2" };
const staged = { incarnation: "b", owner: "s1", epoch: 4 };
const decide = (facts: Partial<TopicDecisionFacts>) =>
  decideTopic({ me: "s1", node: stored, copy: null, staged: null, shared: null, ...facts });

test("only an open copy of the node's incarnation and epoch is served, and only once the node says stored", () => {
  expect(decide({ copy: open })).toEqual({ do: "serve" });
  for (const state of ["new", "moving", "sealed"] as const) {
    expect(decide({ copy: open, node: { ...stored, state } }).do).not.toBe("serve");
  }
  expect(decide({ copy: { ...open, epoch: 3 } })).toEqual({ do: "missing" });
  expect(decide({ copy: { ...open, incarnation: "other" } })).toEqual({ do: "set aside" });
  expect(decide({ copy: open, node: { ...stored, owner: "s2", epoch: 5 } })).toEqual({ do: "drop", epoch: 5 });
  expect(decide({})).toEqual({ do: "missing" });
});

test("a new topic is created, and confirmed before anything is answered", () => {
  const node = topicNodeAfterAssignment("s1", "b");
  expect(decide({ node })).toEqual({ do: "create" });
  const copy = { ...open, epoch: 1 };
  const next = topicNodeAfterConfirmation(node);
  expect(decide({ node, copy })).toEqual({ do: "write", next, why: "confirm" });
  expect(decide({ node: next, copy })).toEqual({ do: "serve" });
  // Given to another, who never stored it, and back.
  const again = topicNodeAfterReassignment(topicNodeAfterReassignment(node, "s2"), "s1");
  expect(decide({ node: again, copy })).toEqual({ do: "create" });
});

test("a handoff, step by step", () => {
  expect(decide({ copy: sealed })).toEqual({ do: "hand off", to: "s2", mayTakeBack: true });
  expect(decide({ me: "s2", staged })).toEqual({
    do: "write",
    next: topicNodeAfterTransfer(stored, "s2"),
    why: "take",
  });
  const moving = topicNodeAfterTransfer(stored, "s2");
  expect(moving).toEqual({ ...stored, owner: "s2", epoch: 5, state: "moving", source: { owner: "s1", epoch: 4 } });
  expect(decide({ node: moving, copy: sealed })).toEqual({ do: "none" });
  expect(decide({ me: "s2", node: moving, staged })).toEqual({ do: "activate", what: "staged" });
  const copy = { ...open, epoch: 5 };
  expect(decide({ me: "s2", node: moving, copy })).toEqual({
    do: "write",
    next: topicNodeAfterConfirmation(moving),
    why: "confirm",
  });
  expect(decide({ me: "s2", node: topicNodeAfterConfirmation(moving), copy })).toEqual({ do: "serve" });
  expect(decide({ node: topicNodeAfterConfirmation(moving), copy: sealed })).toEqual({ do: "drop", epoch: 5 });
});

test("a handoff is repeated until its time is over or the receiver refuses, and then taken back if it may be", () => {
  const sealedTopic = { isOver: false, mayTakeBack: true };
  const refusal = { kind: "refused", why: "no room" } as const;
  expect(decideTopicHandoff(null, sealedTopic)).toBe("repeat");
  expect(decideTopicHandoff(null, { ...sealedTopic, isOver: true })).toBe("take back");
  expect(decideTopicHandoff(refusal, sealedTopic)).toBe("take back");
  const registered = { isOver: false, mayTakeBack: false };
  expect(decideTopicHandoff(null, registered)).toBe("repeat");
  expect(decideTopicHandoff(null, { ...registered, isOver: true })).toBe("give up");
  expect(decideTopicHandoff(refusal, registered)).toBe("give up");
});

test("what the receiver says it has, or had, is looked at in the node, however late the reply comes", () => {
  for (const kind of ["taken", "passed"] as const) {
    for (const isOver of [false, true]) {
      for (const mayTakeBack of [false, true]) {
        expect(decideTopicHandoff({ kind }, { isOver, mayTakeBack })).toBe("look");
      }
    }
  }
});

test("taken back by its owner, it is opened at the next epoch, and what was staged is discarded", () => {
  const node = topicNodeAfterTakeBack(stored);
  expect(decide({ node, copy: sealed })).toEqual({ do: "activate", what: "copy" });
  expect(decide({ me: "s2", node, staged })).toEqual({ do: "discard" });
  expect(decide({ me: "s2", node: { ...stored, owner: "s3" }, staged })).toEqual({ do: "discard" });
});

test("a topic without a node is registered as it is stored: sealed stays sealed, and cannot be taken back", () => {
  const next = { ...stored, state: "sealed" } as const;
  expect(decide({ node: null, copy: sealed })).toEqual({ do: "register", next });
  expect(decide({ node: next, copy: sealed })).toEqual({ do: "hand off", to: "s2", mayTakeBack: false });
  const copy = { ...open, epoch: 5 };
  expect(decide({ me: "s2", node: next, copy })).toMatchObject({ do: "write", why: "claim" });
  expect(decide({ node: null, copy: open })).toEqual({ do: "register", next: stored });
  expect(decide({ node: null, staged })).toEqual({ do: "none" });
});

test("what was staged is taken only from the epoch that was sealed, and an old node is read again", () => {
  expect(decide({ me: "s2", node: { ...stored, epoch: 3 }, staged })).toEqual({ do: "read again" });
  expect(decide({ me: "s2", node: { ...stored, epoch: 5 }, staged })).toEqual({ do: "discard" });
  expect(decide({ me: "s2", node: { ...stored, state: "moving" }, staged })).toEqual({ do: "read again" });
});

test("a topic that is given up begins again as another incarnation with higher numbers; a moving one goes back", () => {
  const fresh = topicNodeAfterForget(stored, "c");
  expect(fresh).toEqual({
    owner: "",
    epoch: 5,
    state: "new",
    incarnation: "c",
    baseOffset: messageIdsPerIncarnation,
    source: null,
  });
  const moving = topicNodeAfterTransfer(stored, "s2");
  const back = topicNodeAfterReturn(moving);
  expect(back).toMatchObject({ owner: "s1", epoch: 6, state: "moving" });
  expect(decide({ node: back, copy: sealed })).toEqual({ do: "activate", what: "copy" });
  expect([topicNodeAfterReturn(stored), topicNodeAfterReturn(topicNodeAfterTakeBack(stored))]).toEqual([null, null]);
  let node: TopicNode | null = stored;
  let times = 0;
  for (; node !== null; times++) node = topicNodeAfterForget(node, "d");
  expect(times).toBe(511);
});

const db = { store: "db", isOwnerThere: true };
const here = { shared: db };
const gone = { shared: { ...db, isOwnerThere: false } };

test("a topic of a shared store is opened by its owner, and taken over when its owner is gone", () => {
  const node = { ...stored, store: "db" };
  expect(decide({ ...here, node })).toEqual({ do: "activate", what: "copy" });
  expect(decide({ ...here, node, copy: open })).toEqual({ do: "serve" });
  const older = { ...open, epoch: 3 };
  expect(decide({ ...here, node, copy: older })).toEqual({ do: "activate", what: "copy" });
  expect(decide({ ...here, node, copy: { ...open, epoch: 5 } })).toEqual({ do: "read again" });
  const others = { ...node, owner: "s2" };
  const next = topicNodeAfterTakeover(others, "s1");
  expect(next).toEqual({ ...others, owner: "s1", epoch: 5 });
  expect(decide({ ...gone, node: others })).toEqual({ do: "write", next, why: "take over" });
  expect(decide({ ...here, node: others })).toEqual({ do: "none" });
  // Its rows belong to all servers of the store: nothing is dropped, what this server has opened before is closed.
  expect(decide({ ...here, node: { ...others, epoch: 5 }, copy: open })).toEqual({ do: "release" });
  const moving = { ...others, state: "moving", source: { owner: "s9", epoch: 3 } } as const;
  expect(decide({ ...gone, node: moving })).toMatchObject({ why: "take over", next: { state: "moving", epoch: 5 } });
  // A proxy assigns it.
  expect(decide({ ...gone, node: topicNodeAfterAssignment("s2", "b", "db") })).toEqual({ do: "none" });
  expect(decide({ ...gone, node: { ...others, state: "sealed" } })).toEqual({ do: "none" });
  // Topics of another store are left to its servers, and this id had another store before.
  expect(decide({ ...gone, node: { ...others, store: "other" } })).toEqual({ do: "none" });
  expect(decide({ ...here, node: stored })).toEqual({ do: "missing" });
});

test("content of a shared store is claimed for a node of a lost tree, and never for one that gave it up", () => {
  const content = { incarnation: "b", baseOffset: 0, epoch: 7, sealedFor: null };
  const made = topicNodeAfterAssignment("s1", "c", "db");
  const next = { ...made, incarnation: "b", epoch: 8, state: "stored" } as const;
  expect(decide({ ...here, node: made, unopened: content })).toEqual({ do: "write", next, why: "claim" });
  expect(decide({ ...here, node: { ...made, baseOffset: 2 ** 44, epoch: 9 }, unopened: content })).toEqual({
    do: "create",
  });
  const same = { ...made, incarnation: "b" };
  expect(decide({ ...here, node: same, unopened: { ...content, epoch: 1 } })).toEqual({ do: "create" });
  expect(decide({ ...here, node: made, copy: { ...open, epoch: 1 } })).toEqual({ do: "release" });
  // A row that is missing, or another one, is not replaced by an empty topic.
  const node = { ...stored, store: "db" };
  expect(decide({ ...here, node, unopened: null })).toEqual({ do: "missing" });
  expect(decide({ ...here, node, unopened: { ...content, incarnation: "d" } })).toEqual({ do: "missing" });
  // Whether sealed content is the newest, only its receiver knows.
  expect(decide({ ...here, node: made, unopened: { ...content, sealedFor: "s3" } })).toEqual({ do: "missing" });
  // A tree that was put back: content of a later epoch is claimed, whichever store the node names.
  const claimed = { ...node, epoch: 8 };
  for (const old of [node, { ...stored, owner: "s3" }, { ...stored, owner: "s3", state: "sealed" as const }]) {
    expect(decide({ ...here, node: old, unopened: content })).toEqual({ do: "write", next: claimed, why: "claim" });
  }
  expect(decideTopicTransfer({ incarnation: "b", owner: "s3", epoch: 4 }, {
    node: { ...stored, owner: "s3", state: "sealed" },
    copy: null,
    staged: null,
    dropped: null,
    unopened: content,
  })).toBe("passed");
});

test("a transfer into a shared store, step by step: any of its servers takes and activates what one has staged", () => {
  const sent = { ...staged, owner: "s3" };
  const node = { ...stored, owner: "s3" };
  const facts = { ...here, staged: sent, unopened: null };
  const moving = topicNodeAfterTransfer(node, "s1", "db");
  expect(moving).toMatchObject({
    owner: "s1",
    epoch: 5,
    state: "moving",
    source: { owner: "s3", epoch: 4 },
    store: "db",
  });
  expect(decide({ ...facts, node })).toEqual({ do: "write", next: moving, why: "take" });
  expect(decide({ ...facts, node: moving })).toEqual({ do: "activate", what: "staged" });
  // Rows of an earlier time in this store are not the content that was sent.
  const earlier = { ...open, epoch: 2, sealedFor: "s3" };
  expect(decide({ ...facts, node: moving, unopened: earlier })).toEqual({ do: "activate", what: "staged" });
  expect(decide({ ...here, node: moving, unopened: earlier })).toMatchObject({ do: "write", why: "return" });
  expect(decide({ ...here, node: moving, copy: { ...open, epoch: 5 } })).toMatchObject({ why: "confirm" });
  // Its owner dies: staged and activated content is found by the next one.
  const next = topicNodeAfterTakeover(moving, "s2");
  expect(decide({ ...gone, me: "s2", node: moving, staged: sent })).toEqual({ do: "write", next, why: "take over" });
  expect(decide({ ...facts, me: "s2", node: next })).toEqual({ do: "activate", what: "staged" });
  const activated = { ...open, epoch: 5 };
  expect(decide({ ...here, me: "s2", node: next, unopened: activated })).toEqual({ do: "activate", what: "copy" });
  // It was staged twice.
  expect(decide({ ...facts, me: "s2", node: next, unopened: activated })).toEqual({ do: "activate", what: "copy" });
  // The database has lost both: the source has everything.
  expect(decide({ ...here, me: "s2", node: next, unopened: null })).toEqual({
    do: "write",
    why: "return",
    next: { ...node, epoch: 7, state: "moving", source: { owner: "s3", epoch: 4 } },
  });
});

test("staged content of a shared store is discarded only if no server can need it any longer", () => {
  const sent = { ...staged, owner: "s3" };
  const facts = { ...here, staged: sent, unopened: null };
  const node = { ...stored, owner: "s3" };
  expect(decide({ ...facts, node: { ...node, epoch: 5 } })).toEqual({ do: "discard" });
  expect(decide({ ...facts, node: { ...node, owner: "s4" } })).toEqual({ do: "discard" });
  // Another server is about to activate it; or has staged it after this node was read.
  expect(decide({ ...facts, node: topicNodeAfterTransfer(node, "s2", "db") })).toEqual({ do: "none" });
  expect(decide({ ...facts, node: { ...node, epoch: 3, incarnation: "a" } })).toEqual({ do: "read again" });
  expect(decide({ ...facts, node: { ...stored, epoch: 3, store: "db" }, copy: { ...open, epoch: 3 } })).toEqual({
    do: "serve",
  });
});

test("a transfer out of a shared store: sealed rows are handed off, taken back, and dropped at the end", () => {
  const node = { ...stored, store: "db" };
  const back = topicNodeAfterTakeBack(node);
  expect(decide({ ...here, node, copy: sealed })).toEqual({ do: "hand off", to: "s2", mayTakeBack: true });
  expect(back).toEqual({ ...node, epoch: 5 });
  expect(decide({ ...here, node: back, copy: sealed })).toEqual({ do: "activate", what: "copy" });
  // The receiver has a store of its own.
  expect(decide({ me: "s2", node, staged })).toMatchObject({ do: "write", why: "take" });
  const moving = topicNodeAfterTransfer(node, "s2");
  expect(moving).toMatchObject({ owner: "s2", epoch: 5, source: { owner: "s1", epoch: 4, store: "db" } });
  expect("store" in moving).toBe(false);
  const rows = { unopened: sealed };
  for (const facts of [{ copy: sealed }, rows]) {
    expect(decide({ ...here, node: moving, ...facts })).toEqual({ do: "none" });
    expect(decide({ ...gone, node: moving, ...facts })).toEqual({ do: "none" });
    expect(decide({ ...here, node: topicNodeAfterConfirmation(moving), ...facts })).toEqual({ do: "drop", epoch: 5 });
  }
  // The receiver is lost for good: the rows are opened again, by any server of the store.
  expect(topicNodeAfterReturn(moving)).toEqual({ ...node, epoch: 6 });
});
