import { describe, expect, test } from "bun:test";
import { decideTopicRestore } from "../../../../src/pubsub/ownership/topic_decision.ts";
import { messageIdsPerIncarnation, type TopicNode } from "../../../../src/pubsub/ownership/topic_node.ts";

const node: TopicNode = { owner: "s1", epoch: 5, state: "stored", incarnation: "b", baseOffset: 0, source: null };
const copy = { incarnation: "b", baseOffset: 0, epoch: 5, sealedFor: null };
const nothing = { copy: null, staged: null };
const moving = (owner: string, epoch: number): TopicNode => ({ ...node, state: "moving", source: { owner, epoch } });

describe("of a server whose store was put back", () => {
  test("a topic that is in it goes on at the next epoch, behind every number that was given", () => {
    const next = { ...moving("s1", 5), epoch: 6, baseOffset: messageIdsPerIncarnation };
    expect(decideTopicRestore("s1", node, { copy, staged: null })).toEqual({ do: "restore", next });
    // It had been away and had come back, or was sealed, when the store was lost.
    for (const was of [{ ...copy, epoch: 3 }, { ...copy, epoch: 3, sealedFor: "s2" }]) {
      const decision = decideTopicRestore("s1", node, { copy: was, staged: null });
      expect(decision).toMatchObject({ do: "restore", next: { source: { owner: "s1", epoch: 3 } } });
    }
    expect(decideTopicRestore("s1", moving("s1", 4), { copy, staged: null })).toMatchObject({ do: "restore" });
  });

  test("a topic that is not in it is given up, and one that had not arrived goes back", () => {
    expect(decideTopicRestore("s1", node, nothing)).toEqual({ do: "give up" });
    expect(decideTopicRestore("s1", node, { copy: { ...copy, incarnation: "another" }, staged: null })).toEqual({
      do: "give up",
    });
    expect(decideTopicRestore("s1", moving("s2", 4), nothing)).toEqual({ do: "give up" });
    expect(decideTopicRestore("s1", moving("s2", 4), { copy: { ...copy, epoch: 3 }, staged: null })).toEqual({
      do: "give up",
    });
  });

  test("what others have, nobody has had, or has arrived whole is left alone", () => {
    expect(decideTopicRestore("s1", { ...node, owner: "s2" }, { copy, staged: null })).toEqual({ do: "keep" });
    expect(decideTopicRestore("s1", { ...node, state: "new" }, nothing)).toEqual({ do: "keep" });
    const staged = { incarnation: "b", owner: "s2", epoch: 4 };
    expect(decideTopicRestore("s1", moving("s2", 4), { copy: null, staged })).toEqual({ do: "keep" });
    expect(decideTopicRestore("s1", { ...node, state: "sealed" }, { copy: { ...copy, sealedFor: "s2" }, staged: null }))
      .toEqual({
        do: "keep",
      });
  });

  test("nothing is begun again that a receiver may have gone on with, or without numbers", () => {
    expect(decideTopicRestore("s1", { ...node, state: "sealed" }, { copy, staged: null })).toEqual({ do: "leave" });
    const full = { ...node, baseOffset: messageIdsPerIncarnation * 511 };
    expect(decideTopicRestore("s1", full, { copy, staged: null })).toEqual({ do: "leave" });
  });
});
