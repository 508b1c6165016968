import { expect, test } from "bun:test";
import { announceProcess } from "../../../../src/pubsub/ownership/announcements.ts";
import { forgetServer } from "../../../../src/pubsub/ownership/forget_server.ts";
import { PubsubPath } from "../../../../src/pubsub/ownership/pubsub_path.ts";
import {
  type TopicNode,
  topicNodeAfterAssignment,
  topicNodeAfterConfirmation,
  topicNodeAfterTakeover,
  topicNodeAfterTransfer,
} from "../../../../src/pubsub/ownership/topic_node.ts";
import { TopicNodes } from "../../../../src/pubsub/ownership/topic_nodes.ts";
import { FakeClock } from "../../../support/fake_clock.ts";
import { FakeTree } from "../../../support/fake_tree.ts";
import { FakeZooKeeper } from "../../../support/fake_zookeeper.ts";

const path = new PubsubPath("/baton");
const own = topicNodeAfterConfirmation(topicNodeAfterAssignment("old", "b"));
const ofDatabase = topicNodeAfterConfirmation(topicNodeAfterAssignment("s1", "b", "db"));

/** Forgets a server that has this topic, while these servers of the database are there. */
async function forgotten(id: string, node: TopicNode, others: readonly string[] = []) {
  const clock = new FakeClock();
  const zk = new FakeZooKeeper(new FakeTree(), clock);
  const { signal } = new AbortController();
  for (const other of others) {
    const announcement = { id: other, endpoint: `at ${other}`, storeId: other, store: "db" };
    await announceProcess(zk, path.server(other), announcement, { clock, signal });
  }
  const nodes = new TopicNodes(zk, path);
  await nodes.create("t", node);
  const { lost, returned, takenOver } = await forgetServer(zk, path, id);
  return { lost, returned, takenOver, node: (await nodes.read("t"))?.node };
}

test("a topic on its way into a database goes to another of its servers, or back to its source", async () => {
  const moving = topicNodeAfterTransfer(own, "s1", "db");
  expect(await forgotten("s1", moving, ["s2"])).toEqual({
    lost: [],
    returned: [],
    takenOver: ["t"],
    node: topicNodeAfterTakeover(moving, "s2"),
  });
  expect(await forgotten("s1", moving)).toEqual({
    lost: [],
    returned: ["t"],
    takenOver: [],
    node: { ...own, epoch: 3, state: "moving", source: { owner: "old", epoch: 1 } },
  });
});

test("a topic on its way out of a database is opened there again, by whichever server is there", async () => {
  const moving = topicNodeAfterTransfer(ofDatabase, "old");
  expect(await forgotten("old", moving, ["s2"])).toEqual({
    lost: [],
    returned: ["t"],
    takenOver: [],
    node: { ...ofDatabase, epoch: 3 },
  });
});

test("a topic of a database stays if no server of it is there, and is never given up", async () => {
  expect(await forgotten("s1", ofDatabase)).toEqual({ lost: [], returned: [], takenOver: [], node: ofDatabase });
});
