import { expect, test } from "bun:test";
import { moveTopic } from "../../../../src/pubsub/admin/move_topics.ts";
import { PubsubPath } from "../../../../src/pubsub/ownership/pubsub_path.ts";
import {
  topicNodeAfterAssignment,
  topicNodeAfterConfirmation,
  topicNodeAfterTakeover,
} from "../../../../src/pubsub/ownership/topic_node.ts";
import { TopicNodes } from "../../../../src/pubsub/ownership/topic_nodes.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";
import { FakeTree } from "../../../support/fake_tree.ts";
import { FakeZooKeeper } from "../../../support/fake_zookeeper.ts";
import { type ScriptedAnswer, ScriptedServer } from "../../../support/scripted_server.ts";

const path = new PubsubPath("/baton");
const clock = systemClock();

/** A topic "t" of server s1, which an operator moves to s1. */
async function rig() {
  const zk = new FakeZooKeeper(new FakeTree(), clock);
  const nodes = new TopicNodes(zk, path);
  await nodes.create("t", topicNodeAfterConfirmation(topicNodeAfterAssignment("s1", "b", "db")));
  const asked: string[] = [];
  return {
    asked,
    server: (id: string, answer: () => Promise<ScriptedAnswer>) =>
      ScriptedServer.start(zk, path, {
        id,
        answer: ({ address, headers }) => {
          asked.push(`${id}: to ${address} at ${headers?.epoch}`);
          return answer();
        },
      }),
    move: () => moveTopic(zk, path, { topic: "t", to: "s1" }, { clock, withinMs: 10_000 }),
    /** What a server writes when it has handed the topic over. */
    give: async (to: string): Promise<number> => {
      const known = await nodes.read("t");
      if (known === null) throw new Error("there is no topic");
      const next = topicNodeAfterTakeover(known.node, to);
      expect(await nodes.write("t", next, known.version)).toBe("written");
      return next.epoch;
    },
  };
}

test("a move to the owner waits for the handoff in progress, and then asks the new owner", async () => {
  const { server, give, move, asked } = await rig();
  // The owner answers when the handoff to s2 has ended.
  await using _old = await server("s1", async () => (await give("s2"), "this server does not serve it"));
  await using _new = await server("s2", () => give("s1"));
  expect(await move()).toEqual({ kind: "moved", from: "s2", epoch: 3 });
  expect(asked).toEqual(["s1: to s1 at 1", "s2: to s1 at 2"]);
});

test("a move to the owner says that the topic is there if the owner says so, and why it is not served", async () => {
  const { server, move } = await rig();
  const answers = [1, "this server does not serve it"];
  await using _owner = await server("s1", () => Promise.resolve(answers.shift() ?? ""));
  expect(await move()).toEqual({ kind: "there" });
  expect(await move()).toEqual({ kind: "kept", owner: "s1", why: "this server does not serve it" });
});

test("a move to an owner that is offline moves nothing", async () => {
  const { move } = await rig();
  expect(await move()).toEqual({ kind: "there" });
});
