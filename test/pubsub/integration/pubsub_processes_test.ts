/** Roles as processes that are killed and stopped while clients go on: what was answered OK arrives, once. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { eventually } from "../../support/eventually.ts";
import { PubsubCluster } from "../../support/pubsub_cluster.ts";
import { expectExactlyOnce, work } from "../../support/pubsub_work.ts";

setDefaultTimeout(180_000);

test("proxies and servers that are killed cost their clients another try, and no message", async () => {
  await using cluster = await PubsubCluster.start({ servers: 2, proxies: 2, as: "processes", sessionTimeoutMs: 2000 });
  expectExactlyOnce(
    await work(cluster, "t", async () => {
      const owner = (await cluster.owners()).get("t") as string;
      for (const node of [cluster.proxy("p1"), cluster.server(owner), cluster.proxy("p2")]) {
        await node.kill();
        await node.restart();
      }
      await Promise.all([cluster.proxy("p1").kill(), cluster.server(owner).kill()]);
      await Promise.all([cluster.proxy("p1").restart(), cluster.server(owner).restart()]);
    }),
  );
});

test("a server that was stopped for longer than its session and goes on has answered nothing wrong", async () => {
  await using cluster = await PubsubCluster.start({ servers: 2, proxies: 2, as: "processes", sessionTimeoutMs: 2000 });
  expectExactlyOnce(
    await work(cluster, "t", async () => {
      const owner = (await cluster.owners()).get("t") as string;
      await using zk = await cluster.session();
      cluster.server(owner).pause();
      const isGone = async () => await zk.exists(cluster.path.server(owner)) === null;
      await eventually(isGone, { withinMs: 20_000, what: "its session to end" });
      cluster.server(owner).resume();
      await eventually(async () => !await isGone(), { withinMs: 20_000, what: "it to come back" });
    }),
  );
});

test("a proxy that is told to stop sends its clients to the others without an unknown outcome", async () => {
  await using cluster = await PubsubCluster.start({ servers: 1, proxies: 2, as: "processes" });
  const client = cluster.client("p1");
  expect((await client.plain("SUBSCRIBE alice t")).status).toBe("OK");
  const answers = Array.from({ length: 500 }, (_, n) => client.plain(`PUT bob t ${n}`, `m${n}`));
  const waiting = client.say({ name: "GET", sender: "carol", topic: "t", last: -1, headers: { waitMs: 30_000 } });
  await answers[0];
  await cluster.proxy("p1").stop();
  for (const { status } of await Promise.all(answers)) expect(["OK", "OVERLOADED"]).toContain(status);
  expect(["OVERLOADED", "NOT_SUBSCRIBED"]).toContain((await waiting).status);
});
