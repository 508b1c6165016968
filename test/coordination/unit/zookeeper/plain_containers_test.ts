import { expect, test } from "bun:test";
import { PlainContainers } from "../../../../src/protocols/zookeeper/plain_containers.ts";
import { createFlag } from "../../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import type { MultiRequest, MultiResult } from "../../../../src/protocols/zookeeper/zookeeper.ts";
import { FakeClock } from "../../../support/fake_clock.ts";
import { FakeTree } from "../../../support/fake_tree.ts";
import { FakeZooKeeper } from "../../../support/fake_zookeeper.ts";

const nothing = new Uint8Array();

/** Plain containers over a tree in memory; `sent` has the requests. */
function start() {
  const tree = new FakeTree();
  const zk = new FakeZooKeeper(tree, new FakeClock());
  const sent: string[] = [];
  const containers = new PlainContainers({
    create: async (path, data, options) => {
      sent.push(`create ${path} ${options.mode}`);
      return (await zk.create(path, data, options)).path;
    },
    delete(path, version) {
      sent.push(`delete ${path}`);
      return zk.delete(path, version);
    },
    exists: (path, options) => zk.exists(path, options),
    multi(requests) {
      sent.push(requests.map(({ type, path }) => `${type} ${path}`).join(", "));
      return zk.multi(requests);
    },
  });
  return { zk, containers, sent };
}

const member = (path: string): MultiRequest => ({
  type: "create",
  path,
  data: nothing,
  acl: [],
  flags: createFlag.ephemeral,
});
const container = (path: string): MultiRequest => ({
  type: "createContainer",
  path,
  data: nothing,
  acl: [],
  flags: createFlag.container,
});

test("a transaction with containers is sent with plain nodes; its result is as if there were containers", async () => {
  const { zk, containers, sent } = start();
  const results = await containers.multi([container("/lock"), container("/lock/queue"), member("/lock/queue/a")], {});
  expect(sent).toEqual(["create /lock, create /lock/queue, create /lock/queue/a"]);
  expect(results.map(({ type }) => type)).toEqual(["createContainer", "createContainer", "create"]);
  const [first] = results as Extract<MultiResult, { type: "createContainer" }>[];
  expect(first?.stat.czxid).toBe((await zk.exists("/lock"))?.czxid ?? -1n);
});

test("the containers above a deleted node are deleted as far as they are empty, the deepest first", async () => {
  const { zk, containers, sent } = start();
  await containers.multi([
    container("/lock"),
    container("/lock/queue"),
    member("/lock/queue/a"),
    member("/lock/queue/b"),
  ], {});
  sent.length = 0;
  await zk.delete("/lock/queue/a", -1);
  containers.deleted("/lock/queue/a");
  expect(await zk.exists("/lock/queue")).not.toBeNull();
  await zk.delete("/lock/queue/b", -1);
  containers.deleted("/lock/queue/b");
  expect(await zk.exists("/lock")).toBeNull();
  expect(sent).toEqual(["delete /lock/queue", "delete /lock", "delete /lock/queue", "delete /lock"]);
});

test("at the end of a session its own nodes go first, then what is empty; other nodes stay", async () => {
  const { zk, containers } = start();
  await containers.create("/app", nothing, {});
  const made = await containers.create("/app/lock", nothing, { mode: "container" });
  expect(made.stat?.czxid).toBe((await zk.exists("/app/lock"))?.czxid ?? -1n);
  await containers.create("/app/lock/a-", nothing, { mode: "ephemeralSequential" });
  containers.clean();
  expect([await zk.exists("/app/lock"), await zk.exists("/app") === null]).toEqual([null, false]);
});

test("a container that another client uses stays", async () => {
  const { zk, containers } = start();
  await containers.multi([container("/lock"), member("/lock/a")], {});
  await zk.create("/lock/b", nothing);
  containers.clean();
  expect(await zk.exists("/lock/a")).toBeNull();
  expect(await zk.exists("/lock")).not.toBeNull();
});
