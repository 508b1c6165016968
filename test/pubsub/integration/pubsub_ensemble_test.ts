/**
 * Publish/subscribe on three nodes of Apache ZooKeeper, of which some are killed: roles move to others, and nobody
 * loses a message.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { describeBackend, zooKeeperEnsemble } from "../../support/backends.ts";
import { isFullDose } from "../../support/dose.ts";
import { eventually } from "../../support/eventually.ts";
import { PubsubCluster } from "../../support/pubsub_cluster.ts";
import { expectExactlyOnce, work } from "../../support/pubsub_work.ts";

setDefaultTimeout(180_000);

describeBackend(zooKeeperEnsemble, () => {
  test("the leader and another node are killed; in the full dose every node, then briefly the majority", async () => {
    await using backend = await started();
    const roles = { servers: 2, proxies: 2, as: "processes" } as const;
    await using cluster = await PubsubCluster.start({ backend: backend.running, ...roles, sessionTimeoutMs: 6000 });
    const { nodes } = backend.running;
    const leader = await backend.running.leader();
    const victims = isFullDose ? nodes : [leader, ...nodes.filter((node) => node !== leader).slice(0, 1)];
    const done = await work(cluster, "t", async (got) => {
      const goesOn = async (what: string) => {
        const before = got();
        await eventually(() => got() > before + 10, { withinMs: 60_000, what: `messages to arrive ${what}` });
      };
      for (const [at, node] of victims.entries()) {
        await node.kill();
        await goesOn(`without node ${at + 1}`);
        await node.restart();
        await goesOn(`with node ${at + 1} again`);
      }
      if (isFullDose) {
        const [first, second] = nodes;
        await Promise.all([first?.kill(), second?.kill()]);
        await Promise.all([first?.restart(), second?.restart()]);
        await goesOn("when the majority is back");
      }
      // What is new still finds its way: the tree can be written.
      const client = cluster.client("p1");
      await eventually(async () => (await client.plain("PUT bob new 1", "x")).status === "OK", { withinMs: 60_000 });
      await eventually(async () => (await cluster.owners()).get("new") !== undefined);
    });
    expectExactlyOnce(done);
    expect(new Set([...cluster.servers.values()].map(({ pid }) => pid)).size).toBe(2); // nobody had to be started again
  });
});

async function started() {
  const running = await zooKeeperEnsemble.start({ tickTimeMs: 500, syncLimit: 4 });
  return { running, [Symbol.asyncDispose]: () => running.close() };
}
