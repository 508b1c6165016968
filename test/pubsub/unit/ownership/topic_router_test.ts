import { expect, test } from "bun:test";
import {
  cachedRoutesMax,
  chooseServerForTopic,
  chooseTopicSuccessor,
  TopicRouter,
} from "../../../../src/pubsub/ownership/topic_router.ts";
import { PubsubPath } from "../../../../src/pubsub/ownership/pubsub_path.ts";
import { AnnouncedServers } from "../../../../src/pubsub/ownership/announced_servers.ts";
import {
  topicNodeAfterAssignment,
  topicNodeAfterConfirmation,
  topicNodeAfterTransfer,
} from "../../../../src/pubsub/ownership/topic_node.ts";
import { TopicNodes } from "../../../../src/pubsub/ownership/topic_nodes.ts";
import { announceProcess } from "../../../../src/pubsub/ownership/announcements.ts";
import { FakeClock, settled } from "../../../support/fake_clock.ts";
import { FakeTree } from "../../../support/fake_tree.ts";
import { FakeZooKeeper } from "../../../support/fake_zookeeper.ts";

const path = new PubsubPath("/baton");

/** A proxy among servers that only say that they are there. */
async function proxyAmong(...ids: string[]) {
  const clock = new FakeClock();
  const tree = new FakeTree();
  const signal = new AbortController().signal;
  const servers = new Map<string, FakeZooKeeper>();
  const start = async (id: string) => {
    const zk = new FakeZooKeeper(tree, clock);
    servers.set(id, zk);
    await announceProcess(zk, path.server(id), { id, endpoint: `at ${id}`, storeId: id }, { clock, signal });
  };
  for (const id of ids) await start(id);
  const zk = new FakeZooKeeper(tree, clock);
  const list = await AnnouncedServers.read(zk, path.servers, clock);
  return { zk, list, router: new TopicRouter(zk, path, list), nodes: new TopicNodes(zk, path), servers, start };
}

test("the fewest topics, and of several the smallest id", () => {
  expect(chooseServerForTopic(new Map())).toBeNull();
  expect(chooseServerForTopic(new Map([["s2", 1], ["s10", 1], ["s1", 2]]))).toBe("s10");
  expect(chooseServerForTopic(new Map([["b", 0], ["a", 0], ["B", 0]]))).toBe("B");
});

test("topics that are assigned all at once are spread all the same", async () => {
  const { router } = await proxyAmong("s1", "s2", "s3");
  const routes = await Promise.all(Array.from({ length: 30 }, (_, topic) => router.findRoute(`t${topic}`)));
  const counts = Map.groupBy(routes, (route) => route.kind === "server" ? route.id : "");
  expect([...counts].map(([id, all]) => `${id}: ${all.length}`).sort()).toEqual(["s1: 10", "s2: 10", "s3: 10"]);
});

test("a topic that is known costs no request, and one that many ask for at once is looked up once", async () => {
  const { router, zk } = await proxyAmong("s1");
  const before = zk.sent.length;
  const routes = await Promise.all(Array.from({ length: 50 }, () => router.findRoute("t")));
  expect(new Set(routes.map((route) => JSON.stringify(route))).size).toBe(1);
  const after = zk.sent.length;
  expect(after - before).toBeLessThan(15);
  await router.findRoute("t");
  expect(router.cachedRoute("t")).toEqual({ kind: "server", id: "s1", endpoint: "at s1", epoch: 1 });
  expect(zk.sent.length).toBe(after);
});

test("a topic that was stored waits for its server; one that nobody stored goes to another", async () => {
  const { router, servers, nodes, list } = await proxyAmong("s1", "s2");
  for (const topic of ["new", "stored"]) await nodes.create(topic, topicNodeAfterAssignment("s2", "b"));
  await nodes.write("stored", topicNodeAfterConfirmation(topicNodeAfterAssignment("s2", "b")), 0);
  servers.get("s2")?.expire();
  await settled();
  expect([...list.servers.keys()]).toEqual(["s1"]);
  expect(await router.findRoute("stored")).toEqual({ kind: "unavailable", owner: "s2" });
  expect(await router.findRoute("new")).toEqual({ kind: "server", id: "s1", endpoint: "at s1", epoch: 2 });
  servers.get("s1")?.expire();
  await settled();
  expect(await router.findRoute("another")).toEqual({ kind: "no servers" });
});

test("a server's hint is believed when it is newer, and makes the proxy look when it is none", async () => {
  const { router, nodes, zk } = await proxyAmong("s1", "s2");
  await router.findRoute("t");
  const asked = { owner: "s1", epoch: 1 };
  router.correctRoute("t", asked, { owner: "s2", epoch: 2 });
  expect(router.cachedRoute("t")).toMatchObject({ id: "s2", epoch: 2 });
  router.correctRoute("t", asked, null); // the answer to an earlier request: it is known already
  router.correctRoute("t", asked, { owner: "s1", epoch: 1 });
  expect(router.cachedRoute("t")).toMatchObject({ id: "s2", epoch: 2 });
  await nodes.write(
    "t",
    topicNodeAfterTransfer(topicNodeAfterTransfer(topicNodeAfterAssignment("s1", "b"), "s2"), "s1"),
    0,
  );
  router.correctRoute("t", { owner: "s2", epoch: 2 }, null);
  expect(router.cachedRoute("t")).toBeNull();
  const before = zk.sent.length;
  expect(await router.findRoute("t")).toMatchObject({ id: "s1", epoch: 3 });
  expect(zk.sent.length - before).toBe(1);
});

test("a server that comes back at another address is found there", async () => {
  const { router, servers, start } = await proxyAmong("s1");
  await router.findRoute("t");
  servers.get("s1")?.expire();
  await settled();
  expect(router.cachedRoute("t")).toBeNull();
  await start("s1");
  await settled();
  expect(router.cachedRoute("t")).toMatchObject({ id: "s1" });
});

test("what is remembered is bounded", async () => {
  const { router } = await proxyAmong("s1");
  for (let topic = 0; topic < cachedRoutesMax + 10; topic++) {
    router.correctRoute(`t${topic}`, { owner: "s0", epoch: 1 }, { owner: "s1", epoch: 2 });
  }
  expect(router.size).toBe(cachedRoutesMax);
  expect(router.cachedRoute("t9")).toBeNull();
  expect(router.cachedRoute("t10")).not.toBeNull();
});

test("who only asks makes no topic, and is told of one that was made just now elsewhere", async () => {
  const { router, nodes, zk, servers } = await proxyAmong("s1", "s2");
  expect(await router.findRoute("t", { creates: false })).toEqual({ kind: "no topic" });
  expect(await nodes.read("t")).toBeNull();
  const asking = router.findRoute("t", { creates: false });
  const making = router.findRoute("t");
  expect(await making).toMatchObject({ kind: "server", id: "s1" });
  expect((await asking).kind).toMatch(/^(server|no topic)$/);
  expect(await router.findRoute("t", { creates: false })).toMatchObject({ kind: "server", id: "s1" });

  const before = zk.sent.length;
  await router.findRoute("u", { creates: false });
  // A server of the ensemble may be behind: only what was read after a sync says that there is nothing.
  expect(zk.sent.slice(before).map((request) => JSON.stringify(request)).join(" ")).toMatch(/sync.*getData/);

  await nodes.create("given up", topicNodeAfterAssignment("s2", "b"));
  servers.get("s2")?.expire();
  await settled();
  expect(await router.findRoute("given up", { creates: false })).toEqual({ kind: "no topic" });
  expect((await nodes.read("given up"))?.node.owner).toBe("s2");
});

test("requests for a topic of a shared store whose owner is gone go to one other server, for all proxies", () => {
  const servers = ["s1", "s2", "s3", "s4"];
  const topics = Array.from({ length: 400 }, (_, at) => `topic ${at}`);
  const before = topics.map((topic) => chooseTopicSuccessor(topic, servers));
  expect(topics.map((topic) => chooseTopicSuccessor(topic, servers.toReversed()))).toEqual(before);
  const after = topics.map((topic) => chooseTopicSuccessor(topic, servers.slice(0, 3)));
  // Only what the fourth one had goes elsewhere, and to all of the others.
  expect(before.every((server, index) => server === "s4" || server === after[index])).toBe(true);
  const moved = after.filter((_, index) => before[index] === "s4");
  for (const server of ["s1", "s2", "s3"]) expect(moved.filter((other) => other === server).length).toBeGreaterThan(10);
  expect(chooseTopicSuccessor("topic", [])).toBeNull();
});
