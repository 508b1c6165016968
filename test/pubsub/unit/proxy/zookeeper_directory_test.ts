/** A proxy's view of servers and topics over its sessions. */
import { expect, test } from "bun:test";
import { announceProcess } from "../../../../src/pubsub/ownership/announcements.ts";
import { PubsubPath } from "../../../../src/pubsub/ownership/pubsub_path.ts";
import { topicNodeAfterAssignment, topicNodeAfterConfirmation } from "../../../../src/pubsub/ownership/topic_node.ts";
import { TopicNodes } from "../../../../src/pubsub/ownership/topic_nodes.ts";
import type { TopicRoute } from "../../../../src/pubsub/ownership/topic_router.ts";
import { ZookeeperTopicDirectory } from "../../../../src/pubsub/proxy/zookeeper_directory.ts";
import type { Clock } from "../../../../src/base/support/clock.ts";
import { eventually } from "../../../support/eventually.ts";
import { FakeTree } from "../../../support/fake_tree.ts";
import { FakeZooKeeper } from "../../../support/fake_zookeeper.ts";
import { hastyClock } from "../../../support/hasty_clock.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";

test("a proxy that cannot announce itself tries more and more seldom", async () => {
  const hasty = hastyClock(100);
  const waits: number[] = [];
  const clock: Clock = {
    now: () => hasty.now(),
    noticeSuspend: () => {},
    startTimer(delayMs, callback) {
      waits.push(delayMs);
      const immediate = setImmediate(callback);
      return () => clearImmediate(immediate);
    },
  };
  const directory = new ZookeeperTopicDirectory({ path: new PubsubPath("/baton"), clock, onProblem: () => {} });
  const tree = new FakeTree();
  const stopping = new AbortController();
  let sessions = 0;
  const open = () => {
    if (++sessions === 40) stopping.abort(new Error("seen enough"));
    return Promise.resolve(new FakeZooKeeper(tree, hasty, { timeoutMs: 1e9 }));
  };
  // No name: the tree refuses it each time.
  const running = directory.run(open, { id: "x".repeat(1025), endpoint: "tcp://p", storeId: "p" }, stopping.signal);
  await running.catch((thrown) => expect(thrown.message).toBe("seen enough"));
  expect(Math.max(...waits)).toBeGreaterThan(500);
});

test("after the tree was lost no topic counts as new before the servers that were there are back", async () => {
  const clock = systemClock();
  const path = new PubsubPath("/baton");
  const stopping = new AbortController();
  const lost = new FakeTree();
  const empty = new FakeTree();
  empty.zxid = 1000n;
  const { signal } = stopping;
  const join = (tree: FakeTree, id: string) => {
    const zk = new FakeZooKeeper(tree, clock);
    return announceProcess(zk, path.server(id), { id, endpoint: `at ${id}`, storeId: id }, { clock, signal });
  };
  for (const id of ["s1", "s2"]) await join(lost, id);
  const problems: string[] = [];
  const directory = new ZookeeperTopicDirectory({
    path,
    clock,
    onProblem: (problem) => problems.push(String(problem)),
  });
  let tree = lost;
  let proxy = new FakeZooKeeper(lost, clock);
  const open = () => Promise.resolve(proxy = new FakeZooKeeper(tree, clock));
  const running = directory.run(open, { id: "p", endpoint: "tcp://p", storeId: "p" }, signal);
  running.catch(() => {});
  await directory.ready;
  expect(await directory.findRoute("t", {})).toMatchObject({ kind: "server", id: "s1" });

  tree = empty;
  await join(empty, "s2");
  const before = proxy;
  proxy.expire();
  await eventually(() => proxy !== before && directory.isConnected);
  const unknown: TopicRoute = { kind: "unknown owner", awaited: ["s1"] };
  expect(await directory.findRoute("t", {})).toEqual(unknown);
  expect(await directory.findRoute("t", { creates: false })).toEqual(unknown);
  expect(problems.join()).toMatch(/has lost its data.* themselves again: "s1";/);

  // As a server does: first what it has, then that it is there.
  const nodes = new TopicNodes(new FakeZooKeeper(empty, clock), path);
  await nodes.create("t", topicNodeAfterConfirmation(topicNodeAfterAssignment("s1", "b")));
  await join(empty, "s1");
  await eventually(() => directory.servers.has("s1"));
  expect(await directory.findRoute("t", {})).toMatchObject({ kind: "server", id: "s1" });
  expect(await directory.findRoute("never was", { creates: false })).toEqual({ kind: "no topic" });
  expect(await directory.findRoute("new", {})).toMatchObject({ kind: "server" });
  stopping.abort(new Error("seen enough"));
});

test("a server of a later version is reported once, and is no server that could get a topic", async () => {
  const clock = systemClock();
  const path = new PubsubPath("/baton");
  const stopping = new AbortController();
  const { signal } = stopping;
  const tree = new FakeTree();
  const server = new FakeZooKeeper(tree, clock);
  await announceProcess(server, path.server("s3"), { id: "s3", endpoint: "there", storeId: "s3" }, { clock, signal });
  const later = new TextEncoder().encode(JSON.stringify({ layout: 2 }));
  await server.setData(path.server("s3"), later, -1);
  const problems: string[] = [];
  const directory = new ZookeeperTopicDirectory({
    path,
    clock,
    onProblem: (problem) => problems.push((problem as Error).message),
  });
  const open = () => Promise.resolve(new FakeZooKeeper(tree, clock));
  const running = directory.run(open, { id: "p", endpoint: "tcp://p", storeId: "p" }, signal);
  running.catch(() => {});
  await directory.ready;
  await server.setData(path.server("s3"), later, -1);
  await eventually(() => directory.later.length === 1);
  expect(await directory.findRoute("t", {})).toEqual({ kind: "no servers" });
  expect(problems).toEqual([
    'server "s3" announces itself in a format that this version does not know (format 2, known: 1): upgrade baton on this host',
  ]);
  stopping.abort(new Error("seen enough"));
  await running.catch(() => {});
});
