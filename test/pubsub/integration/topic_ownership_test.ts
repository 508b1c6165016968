/** Who owns a topic, on real servers: assignment, handoff, loss of sessions, disks and servers. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { connectToZooKeeper } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import { forgetServer } from "../../../src/pubsub/ownership/forget_server.ts";
import { readTopicList } from "../../../src/pubsub/ownership/topic_nodes.ts";
import { newGuid } from "../../../src/base/support/guid.ts";
import { describeBackend, type RunningBackend, type ServerNode } from "../../support/backends.ts";
import { tierBackends } from "../../support/tier.ts";
import { ChaosProxy } from "../../support/chaos_proxy.ts";
import { CrashPoint } from "../../support/crash_point.ts";
import { eventually } from "../../support/eventually.ts";
import { type CrewServer, OwnershipCrew } from "../../support/ownership_crew.ts";

setDefaultTimeout(60_000);

for (const kind of tierBackends) {
  describeBackend(kind, () => {
    let backend: RunningBackend;
    beforeAll(async () => void (backend = await kind.start()), 60_000);
    afterAll(() => backend.close());

    const newCrew = (sessionTimeoutMs = 10_000) =>
      new OwnershipCrew(
        `/crew-${newGuid().slice(0, 12)}`,
        () => connectToZooKeeper({ servers: parseZooKeeperServers(backend.servers), sessionTimeoutMs }),
      );
    const owners = async (crew: OwnershipCrew) => {
      const found = new Map<string, string>();
      for await (const { topic, node } of readTopicList(await crew.client(), crew.path)) found.set(topic, node.owner);
      return found;
    };

    test("a new topic goes to the server with the fewest, or the smaller id, whichever proxy assigns it", async () => {
      await using crew = newCrew();
      await Promise.all(["s1", "s2", "s3"].map((id) => crew.start(id)));
      const [one, two] = [await crew.router(), await crew.router()];
      const by: string[] = [];
      for (let topic = 0; topic < 7; topic++) {
        by.push((await crew.put(topic % 2 === 0 ? one : two, `t${topic}`, "a")).by);
      }
      expect(by).toEqual(["s1", "s2", "s3", "s1", "s2", "s3", "s1"]);
    });

    test("a topic may have any name", async () => {
      await using crew = newCrew();
      await crew.start("server 1/α");
      const router = await crew.router();
      const names = [
        "a b",
        "a/b",
        "a%2Fb",
        "..",
        ".",
        "~x",
        "täglich 😀",
        "\r\n\0",
        "x".repeat(1024),
        `${"x".repeat(1023)}y`,
      ];
      for (const name of names) expect(await crew.put(router, name, "m")).toEqual({ seq: 1, by: "server 1/α" });
      expect([...(await owners(crew)).keys()].sort()).toEqual([...names].sort());
    });

    test("two proxies that assign a new topic at once agree on its owner", async () => {
      await using crew = newCrew();
      await Promise.all(["s1", "s2"].map((id) => crew.start(id)));
      const routers = await Promise.all([crew.router(), crew.router(), crew.router()]);
      for (let topic = 0; topic < 20; topic++) {
        const routes = await Promise.all(routers.map((router) => router.findRoute(`t${topic}`)));
        expect(new Set(routes.map((route) => JSON.stringify(route))).size).toBe(1);
      }
    });

    test("a handoff moves everything, an old request moves nothing, and proxies find the new owner", async () => {
      await using crew = newCrew();
      const [one, two] = await Promise.all(["s1", "s2"].map((id) => crew.start(id))) as [CrewServer, CrewServer];
      const router = await crew.router();
      for (const id of ["a", "b", "c"]) await crew.put(router, "t", id);
      one.store.move("t", 1, 2);
      expect(await one.ownership.handOff("t", "s2", 1)).toEqual({ kind: "moved", epoch: 2 });
      expect(await two.ownership.handOff("t", "s1", 1)).toMatchObject({ kind: "kept" });
      expect(two.store.content("t")).toEqual({ log: ["a", "b", "c"], cursor: 2 });
      expect(one.store.content("t")).toBeNull();
      expect(await crew.put(router, "t", "b")).toEqual({ seq: 2, by: "s2" });
      expect(await crew.put(router, "t", "d")).toEqual({ seq: 4, by: "s2" });
      expect(await two.ownership.handOff("t", "s1")).toEqual({ kind: "moved", epoch: 3 });
      expect(await crew.put(router, "t", "e")).toEqual({ seq: 5, by: "s1" });
      expect(crew.problems).toEqual([]);
    });

    test("a topic that returns in the same session is counted for its server again", async () => {
      await using crew = newCrew();
      const [one, two] = await Promise.all(["s1", "s2"].map((id) => crew.start(id))) as [CrewServer, CrewServer];
      const zk = await crew.client();
      const countedFor = async (wanted: string[]) => {
        const at = async (id: string) => await zk.exists(crew.path.ownedTopic(id, "t")) === null ? [] : [id];
        const isCounted = async () => `${(await Promise.all(["s1", "s2"].map(at))).flat()}` === `${wanted}`;
        await eventually(isCounted, { withinMs: 10_000, what: `the topic to be counted for ${wanted}` });
      };
      await crew.put(await crew.router(), "t", "a");
      await countedFor(["s1"]);
      expect(await one.ownership.handOff("t", "s2")).toMatchObject({ kind: "moved" });
      await countedFor(["s2"]);
      expect(await two.ownership.handOff("t", "s1")).toMatchObject({ kind: "moved" });
      await countedFor(["s1"]);
    });

    test("a handoff to the owner itself is answered after the one in progress, by the owner at that time", async () => {
      await using crew = newCrew();
      const [one, two] = await Promise.all(["s1", "s2"].map((id) => crew.start(id))) as [CrewServer, CrewServer];
      await crew.put(await crew.router(), "t", "a");
      expect(await one.ownership.handOff("t", "s1", 1)).toEqual({ kind: "moved", epoch: 1 });
      const [away, stays] = await Promise.all([
        one.ownership.handOff("t", "s2", 1),
        one.ownership.handOff("t", "s1", 1),
      ]);
      expect(away).toEqual({ kind: "moved", epoch: 2 });
      expect(stays).toEqual({ kind: "kept", why: "this server does not serve it" });
      expect(await two.ownership.handOff("t", "s2", 1)).toEqual({ kind: "moved", epoch: 2 });
    });

    test("what cannot be handed off stays, at the next epoch, and is served", async () => {
      await using crew = newCrew();
      crew.handoffMs = 300;
      const [one, two] = await Promise.all(["s1", "s2"].map((id) => crew.start(id))) as [CrewServer, CrewServer];
      const router = await crew.router();
      await crew.put(router, "t", "a");
      expect(await one.ownership.handOff("t", "s9")).toMatchObject({
        kind: "kept",
        why: 'the server "s9" is not running',
      });
      two.store.isFull = true;
      expect(await one.ownership.handOff("t", "s2")).toEqual({ kind: "kept", why: "FULL" });
      crew.cutOff.add("s2");
      expect(await one.ownership.handOff("t", "s2")).toEqual({ kind: "kept", why: "s2 is cut off" });
      expect(one.store.row("t").copy?.epoch).toBe(3);
      expect(await crew.put(router, "t", "b")).toEqual({ seq: 2, by: "s1" });
    });

    test("transfers that arrive late, twice, or after everything else change nothing", async () => {
      await using crew = newCrew();
      crew.handoffMs = 300;
      const [one, two] = await Promise.all(["s1", "s2"].map((id) => crew.start(id))) as [CrewServer, CrewServer];
      const router = await crew.router();
      await crew.put(router, "t", "a");
      crew.isNetworkSlow = true;
      expect(await one.ownership.handOff("t", "s2")).toMatchObject({ kind: "kept" });
      crew.isNetworkSlow = false;
      await crew.put(router, "t", "b");
      for (const deliver of crew.transfers) expect((await deliver()).kind).toBe("passed");
      expect(await crew.put(router, "t", "c")).toEqual({ seq: 3, by: "s1" });
      expect(await one.ownership.handOff("t", "s2")).toMatchObject({ kind: "moved" });
      expect(await crew.put(router, "t", "d")).toEqual({ seq: 4, by: "s2" });
      for (const deliver of [...crew.transfers]) expect((await deliver()).kind).toBe("passed");
      expect(await two.ownership.handOff("t", "s1")).toMatchObject({ kind: "moved" });
      await Promise.all(crew.transfers.map((deliver) => deliver()));
      await two.stop();
      await crew.start("s2");
      for (const deliver of crew.transfers) expect((await deliver()).kind).toBe("passed");
      expect(await crew.put(router, "t", "e")).toEqual({ seq: 5, by: "s1" });
      expect(crew.store("s1").content("t")?.log).toEqual(["a", "b", "c", "d", "e"]);
      expect(crew.store("s2").row("t")).toMatchObject({ copy: null, staged: null });
    });

    test("handoffs to two servers at once: one has it, and nothing is left at the others", async () => {
      await using crew = newCrew();
      const servers = await Promise.all(["s1", "s2", "s3"].map((id) => crew.start(id)));
      const router = await crew.router();
      await crew.put(router, "t", "a");
      for (let turn = 0; turn < 10; turn++) {
        await Promise.all(servers.flatMap((from) => ["s1", "s2", "s3"].map((to) => from.ownership.handOff("t", to))));
        await crew.put(router, "t", `m${turn}`);
        await eventually(() => servers.filter(({ store }) => store.content("t") !== null).length === 1);
      }
      const owner = servers.find(({ store }) => store.content("t") !== null);
      expect(owner?.store.content("t")?.log.length).toBe(11);
    });

    test("a server whose session has ended answers nothing until it has read again what it owns", async () => {
      await using crew = newCrew(2000);
      const one = await crew.start("s1");
      const router = await crew.router();
      await crew.put(router, "t", "a");
      const permit = one.ownership.currentPermit("t");
      expect(permit?.lease.isConfirmed()).toBe(true);
      await one.zk.close();
      expect(permit?.lease.isConfirmed()).toBe(false);
      await eventually(() => one.ownership.isRegistered);
      expect(permit?.lease.isConfirmed()).toBe(false);
      expect(await crew.put(router, "t", "b")).toEqual({ seq: 2, by: "s1" });
    });

    test("a server whose session is not heard confirms nothing, and continues when it is heard again", async () => {
      await using crew = newCrew(3000);
      const one = await crew.start("s1");
      const router = await crew.router();
      await crew.put(router, "t", "a");
      const permit = one.ownership.currentPermit("t");
      expect(permit?.lease.isConfirmed()).toBe(true);
      backend.pause();
      try {
        await eventually(() => permit?.lease.isConfirmed() === false, { what: "the lease to run out" });
        expect(one.zk.session.ended.aborted).toBe(false);
        expect(one.ownership.currentPermit("t")).toBeNull();
        expect(await one.ownership.availability("t")).toEqual({ kind: "away" });
      } finally {
        backend.resume();
      }
      expect(await crew.put(router, "t", "b")).toEqual({ seq: 2, by: "s1" });
    });

    test("a server that was cut off answers nothing once it can be forgotten, and nothing old later", async () => {
      const proxy = await ChaosProxy.start((backend.nodes[0] as ServerNode).address);
      try {
        await using crew = newCrew(2000);
        const through = () =>
          connectToZooKeeper({ servers: parseZooKeeperServers(proxy.servers), sessionTimeoutMs: 2000 });
        const one = await crew.start("s1", new CrashPoint(), through);
        const router = await crew.router();
        const operator = await crew.client();
        await crew.put(router, "t", "a");
        const permit = one.ownership.currentPermit("t");
        proxy.blackHole();
        const confirmations: boolean[] = [];
        const found = await eventually(() => {
          confirmations.push(permit?.lease.isConfirmed() === true);
          return forgetServer(operator, crew.path, "s1");
        }, { what: "the session to end", withinMs: 20_000 });
        expect(found).toEqual({ lost: ["t"], returned: [], takenOver: [] });
        expect([confirmations[0], confirmations.at(-1)]).toEqual([true, false]);
        await crew.start("s2");
        expect(await crew.put(router, "t", "b")).toEqual({ seq: 2 ** 44 + 1, by: "s2" });
        proxy.heal();
        expect(permit?.lease.isConfirmed()).toBe(false);
        await eventually(() => one.ownership.isRegistered && one.store.row("t").aside.length === 1, {
          withinMs: 20_000,
        });
        expect(permit?.lease.isConfirmed()).toBe(false);
        expect(await one.ownership.availability("t")).toMatchObject({ kind: "elsewhere", owner: "s2" });
        expect(await crew.put(router, "t", "c")).toEqual({ seq: 2 ** 44 + 2, by: "s2" });
      } finally {
        await proxy.close();
      }
    });

    test("two servers of one id: the second is told so, unless it is the first one's next life", async () => {
      await using crew = newCrew(2000);
      const one = await crew.start("s1");
      crew.loseDisk("s1");
      await crew.start("s1");
      expect(crew.problems.map(String).join()).toContain("another process uses this id, at s1");
      expect(one.ownership.isRegistered).toBe(true);
    });

    test("a server that is gone keeps its topics, and only new ones go to others", async () => {
      await using crew = newCrew();
      const one = await crew.start("s1");
      await crew.start("s2");
      const router = await crew.router();
      expect((await crew.put(router, "t", "a")).by).toBe("s1");
      await one.stop();
      const route = await eventually(async () => {
        const found = await router.findRoute("t");
        return found.kind === "unavailable" && found;
      });
      expect(route.owner).toBe("s1");
      await eventually(async () =>
        (await router.findRoute("u")).kind === "server" && (await router.findRoute("v")).kind === "server"
      );
      expect([...(await owners(crew))].sort()).toEqual([["t", "s1"], ["u", "s2"], ["v", "s2"]]);
      await crew.start("s1");
      expect(await crew.put(router, "t", "b")).toEqual({ seq: 2, by: "s1" });
    });

    test("topics of a lost disk begin again only when their server is forgotten, with higher ids", async () => {
      await using crew = newCrew();
      const one = await crew.start("s1");
      const router = await crew.router();
      await crew.put(router, "t", "a");
      await one.stop();
      const old = crew.store("s1");
      crew.loseDisk("s1");
      const again = await crew.start("s1");
      expect(again.ownership.isRegistered).toBe(false);
      expect(crew.problems.splice(0)).toEqual([
        expect.objectContaining({ code: "CONFIG", message: expect.stringContaining('1 topic belongs to "s1"') }),
      ]);
      await again.stop();
      const operator = await crew.client();
      expect(await forgetServer(operator, crew.path, "s1")).toEqual({ lost: ["t"], returned: [], takenOver: [] });
      await crew.start("s2");
      expect(await crew.put(router, "t", "b")).toEqual({ seq: 2 ** 44 + 1, by: "s2" });
      // The old disk turns up after all: nothing of it is served, and nothing of it is deleted.
      for (const [topic, row] of old.rows) crew.store("s1").rows.set(topic, row);
      await crew.start("s1");
      await eventually(() => old.row("t").aside.length === 1);
      expect(old.row("t").aside[0]?.log).toEqual(["a"]);
      expect(await crew.put(router, "t", "c")).toEqual({ seq: 2 ** 44 + 2, by: "s2" });
    });

    test("a topic on its way to a server that is lost goes back to where it came from, with everything", async () => {
      await using crew = newCrew(2000);
      crew.handoffMs = 60_000;
      const one = await crew.start("s1");
      const router = await crew.router();
      await crew.put(router, "t", "a");
      const crash = new CrashPoint("setData", "after");
      const two = await crew.start("s2", crash);
      const moving = one.ownership.handOff("t", "s2").catch(() => {});
      await crash.crashed;
      expect((await anyTopic(crew)).node).toMatchObject({ owner: "s2", state: "moving" });
      await two.zk.close();
      const operator = await crew.client();
      expect(await forgetServer(operator, crew.path, "s2")).toEqual({ lost: [], returned: ["t"], takenOver: [] });
      await one.stop();
      await moving;
      await crew.start("s1");
      expect(await crew.put(router, "t", "b")).toEqual({ seq: 2, by: "s1" });
    });

    const anyTopic = async (crew: OwnershipCrew) => {
      for await (const listed of readTopicList(await crew.client(), crew.path)) return listed;
      throw new Error("there is no topic");
    };

    test("servers that lost the tree stand in it again with what they have", async () => {
      await using crew = newCrew();
      const [one, two] = await Promise.all(["s1", "s2"].map((id) => crew.start(id))) as [CrewServer, CrewServer];
      const router = await crew.router();
      await crew.put(router, "t", "a");
      await crew.put(router, "u", "x");
      expect(await one.ownership.handOff("t", "s2")).toMatchObject({ kind: "moved" });
      await Promise.all([one.stop(), two.stop()]);
      const operator = await crew.client();
      for await (const { topic } of readTopicList(operator, crew.path)) {
        await operator.delete(crew.path.topic(topic), -1);
      }
      await Promise.all(["s1", "s2"].map((id) => crew.start(id)));
      expect(await owners(crew)).toEqual(new Map([["t", "s2"], ["u", "s2"]]));
      expect(await crew.put(await crew.router(), "t", "b")).toEqual({ seq: 2, by: "s2" });
    });
  });
}
