import { afterAll, beforeAll, expect, test } from "bun:test";
import { connectToZooKeeper, type ZooKeeperConnectOptions } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import type { WatchEvent, ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { describeBackend, type RunningBackend, type ServerNode } from "../../support/backends.ts";
import { tierBackends } from "../../support/tier.ts";
import { ChaosProxy } from "../../support/chaos_proxy.ts";
import { eventually } from "../../support/eventually.ts";
import { freePorts } from "../../support/free_ports.ts";
import { QuietTime } from "../../support/quiet_time.ts";

const nothing = new Uint8Array(0);
const T = 3000;
const clock = systemClock();

for (const kind of tierBackends) {
  describeBackend(kind, () => {
    let backend: RunningBackend;
    beforeAll(async () => {
      backend = await kind.start();
    }, 40_000);
    afterAll(() => backend.close());

    const open = (servers: string, options: Partial<ZooKeeperConnectOptions> = {}): Promise<ZooKeeper> =>
      connectToZooKeeper({ servers: parseZooKeeperServers(servers), sessionTimeoutMs: T, clock, ...options });
    const proxied = async () => {
      const proxy = await ChaosProxy.start((backend.nodes[0] as ServerNode).address);
      return { proxy, [Symbol.asyncDispose]: () => proxy.close() };
    };

    test("the lease ends before the server gives the session up", async () => {
      await using rig = await proxied();
      const zk = await open(rig.proxy.servers);
      await using observer = await open(backend.servers);
      const { path } = await zk.create("/lease-", nothing, { mode: "ephemeralSequential" });
      const gone = Promise.withResolvers<number>();
      await observer.exists(path, { watch: () => gone.resolve(clock.now()) });
      rig.proxy.blackHole();
      const goneMs = await gone.promise;
      expect(zk.session.leaseEndMs()).toBeLessThan(goneMs);
      expect(goneMs - zk.session.leaseEndMs()).toBeLessThan(T);
      rig.proxy.heal();
      await eventually(() => zk.session.state === "ended", { withinMs: 2 * T });
      expect(zk.session.ended.reason).toHaveProperty("reason", "SESSIONEXPIRED");
      await zk.close();
    }, 20_000);

    test("a cut in the middle of everything loses no session and no order", async () => {
      await using rig = await proxied();
      await using zk = await open(rig.proxy.servers);
      const { path } = await zk.create("/cut-", nothing, { mode: "ephemeralSequential" });
      for (let round = 2; round < 12; round++) {
        const burst = Promise.allSettled(Array.from({ length: 50 }, () => zk.setData(path, nothing, -1)));
        rig.proxy.cut();
        const results = await burst;
        expect(results.every((one) => one.status === "fulfilled" || one.reason.reason === "CONNECTIONLOSS")).toBe(true);
        expect((await zk.exists(path))?.ephemeralOwner).toBe(zk.session.id);
      }
    }, 20_000);

    for (const direction of ["requests", "replies"] as const) {
      test(`${direction} that end in the middle of a frame: it is as if they had not come`, async () => {
        await using rig = await proxied();
        await using zk = await open(rig.proxy.servers);
        const { path } = await zk.create("/torn-", nothing, { mode: "ephemeralSequential" });
        for (let round = 0; round < 8; round++) {
          const before = (await zk.getData(path)).stat.version;
          const torn = rig.proxy.onFrame({ direction, nth: round, action: "tear" });
          const burst = Array.from({ length: 20 }, () => zk.setData(path, nothing, -1));
          const results = await Promise.allSettled(burst);
          await torn;
          const done = results.filter(({ status }) => status === "fulfilled").length;
          const unknown = results.filter((one) => one.status === "rejected" && one.reason.reason === "CONNECTIONLOSS");
          expect(done + unknown.length).toBe(burst.length);
          const { version, ephemeralOwner } = (await zk.getData(path)).stat;
          expect(ephemeralOwner).toBe(zk.session.id);
          expect(version).toBeGreaterThanOrEqual(before + done);
          expect(version).toBeLessThanOrEqual(before + burst.length);
        }
        expect(zk.session.connections).toBeGreaterThanOrEqual(8);
      }, 20_000);
    }

    test(
      "watches are told once each, though the connection breaks again between the answers that arm them",
      async () => {
        await using rig = await proxied();
        await using zk = await open(rig.proxy.servers, { sessionTimeoutMs: 10_000 });
        await using other = await open(backend.servers);
        const root = (await other.create("/armed-", nothing, { mode: "persistentSequential" })).path;
        const paths = Array.from({ length: 1000 }, (_, index) => `${root}/${"x".repeat(180)}-${index}`);
        const told = new Map<string, number>();
        const watch = ({ path }: WatchEvent) => void told.set(path, (told.get(path) ?? 0) + 1);
        await Promise.all(paths.map((path) => other.create(path, nothing)));
        await zk.sync(root);
        await Promise.all(paths.map((path) => zk.getData(path, { watch })));
        rig.proxy.refuse();
        rig.proxy.cut();
        const changed = paths.filter((_, index) => index % 3 === 0);
        await Promise.all(changed.map((path) => other.setData(path, nothing, -1)));
        let armed = 0;
        const broken = rig.proxy.onFrame({
          direction: "replies",
          nth: 0,
          action: "tear",
          // Whatever comes behind the first answer: that has the number of the last change, also of those not yet told.
          matching: ({ operation }) => (operation === "setWatches" ? armed++ : armed) > 0,
        });
        rig.proxy.accept();
        await broken;
        await eventually(() => told.size === changed.length, { what: "all changes to be told" });
        await zk.exists(root);
        expect([...told.values()].every((times) => times === 1)).toBe(true);
        expect(zk.session.connections).toBeGreaterThanOrEqual(3);
      },
      20_000,
    );

    test("close is bounded when nothing answers", async () => {
      await using rig = await proxied();
      const zk = await open(rig.proxy.servers);
      rig.proxy.blackHole();
      const quiet = new QuietTime();
      await zk.close();
      expect(quiet.ms).toBeLessThan(T / 3 + 500);
    }, 20_000);

    test("a connect that nobody answers names each server and what happened there", async () => {
      await using rig = await proxied();
      rig.proxy.blackHole();
      const [free = 0] = await freePorts(1);
      const quiet = new QuietTime();
      const failed = open(`127.0.0.1:${free},${serverOf(rig.proxy)}`, { connectTimeoutMs: 700 });
      const error = await failed.then(() => null, (reason) => reason);
      expect(quiet.ms).toBeLessThan(1200);
      expect(error).toMatchObject({ code: "UNREACHABLE" });
      expect(error.message).toContain(`127.0.0.1:${free}: connection refused`);
      expect(error.message).toMatch(/no response to the handshake within \d+ ms/);
    }, 20_000);

    test("a server killed and started again keeps the session", async () => {
      await using zk = await open(backend.servers);
      const { path } = await zk.create("/restart-", nothing, { mode: "ephemeralSequential" });
      const before = zk.session.connections;
      await backend.restart();
      await eventually(() => zk.session.connections > before && zk.session.state === "connected", {
        withinMs: 20_000,
      });
      expect((await zk.exists(path))?.ephemeralOwner).toBe(zk.session.id);
    }, 60_000);
  });
}

function serverOf(proxy: ChaosProxy): string {
  return proxy.address.kind === "tcp" ? `127.0.0.1:${proxy.address.port}` : "";
}
