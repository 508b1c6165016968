import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { connectToZooKeeper, type ZooKeeperConnectOptions } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import type { WatchEvent, ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { formatAddress } from "../../../src/base/sockets/connection.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { describeBackend, type RunningBackend, type ServerNode, zooKeeperEnsemble } from "../../support/backends.ts";
import { ChaosProxy } from "../../support/chaos_proxy.ts";
import { eventually } from "../../support/eventually.ts";
import { fourLetterWord } from "../../support/four_letter_word.ts";
import { QuietTime } from "../../support/quiet_time.ts";

const nothing = new Uint8Array(0);
const T = 6000;
const clock = systemClock();

describeBackend(zooKeeperEnsemble, () => {
  let backend: RunningBackend;
  const proxies: ChaosProxy[] = [];
  beforeAll(async () => {
    backend = await zooKeeperEnsemble.start({
      tickTimeMs: 500,
      syncLimit: 4,
      javaProperties: { "readonlymode.enabled": "true" },
    });
  }, 60_000);
  afterEach(async () => {
    backend.resume();
    for (const proxy of proxies.splice(0)) await proxy.close();
  });
  afterAll(() => backend.close());

  const open = (servers: string, options: Partial<ZooKeeperConnectOptions> = {}): Promise<ZooKeeper> =>
    connectToZooKeeper({
      servers: parseZooKeeperServers(servers),
      sessionTimeoutMs: T,
      connectTimeoutMs: 20_000,
      clock,
      ...options,
    });

  /** A client that is at the first of the nodes, and may go to the others. */
  async function openAt(first: ServerNode, sessionTimeoutMs = T): Promise<{ zk: ZooKeeper; proxy: ChaosProxy }> {
    const proxy = await ChaosProxy.start(first.address);
    proxies.push(proxy);
    const others = backend.nodes.filter((node) => node !== first).map(({ address }) => address);
    const list = [proxy.address, ...others].map((address) =>
      address.kind === "tcp" ? `${address.host}:${address.port}` : ""
    );
    // Sessions start at a server of the client's choice: try until it is the proxy.
    return await eventually(async () => {
      const zk = await open(list.join(","), { sessionTimeoutMs });
      const before = proxy.counts.requests;
      await zk.exists("/");
      // A connection to the proxy may be one that the client tried beside the one it uses.
      if (proxy.connections === 1 && proxy.counts.requests > before) return { zk, proxy };
      await zk.close();
      return null;
    }, { withinMs: 20_000 });
  }

  for (const role of ["follower", "leader"] as const) {
    test(`a stopped ${role} costs no session: it moves within the lease`, async () => {
      const leader = await backend.leader();
      const node = role === "leader" ? leader : backend.nodes.find((one) => one !== leader) as ServerNode;
      const { zk } = await openAt(node);
      const path = (await zk.create(`/failover-${role}-`, nothing, { mode: "ephemeralSequential" })).path;
      let leaseGapMs = Infinity;
      zk.session.subscribe(() => leaseGapMs = Math.min(leaseGapMs, zk.session.leaseEndMs() - clock.now()));
      node.pause();
      const quiet = new QuietTime();
      await eventually(() => zk.session.connections > 1 && zk.session.state === "connected", { withinMs: T });
      expect(quiet.ms).toBeLessThan(T - 500);
      expect(leaseGapMs).toBeGreaterThan(0);
      expect((await zk.exists(path))?.ephemeralOwner).toBe(zk.session.id);
      node.resume();
      expect((await zk.exists(path))?.ephemeralOwner).toBe(zk.session.id);
      await zk.close();
    }, 40_000);
  }

  for (const hole of ["both", "requests", "replies"] as const) {
    test(`a connection that swallows ${hole === "both" ? "everything" : hole} is left for another server`, async () => {
      const { zk, proxy } = await openAt(backend.nodes[0] as ServerNode);
      const path = (await zk.create("/half-open-", nothing, { mode: "ephemeralSequential" })).path;
      const events: WatchEvent[] = [];
      await zk.getData(path, { watch: (event) => events.push(event) });
      proxy.blackHole(hole);
      const lost = zk.setData(path, nothing, -1).then(() => "done", (error) => error.reason);
      expect(await lost).toBe("CONNECTIONLOSS");
      const found = await zk.exists(path);
      expect(found?.ephemeralOwner).toBe(zk.session.id);
      expect(zk.session.connections).toBe(2);
      if (found?.version === 0) await zk.setData(path, nothing, -1); // the lost request was not done
      await eventually(() => events.length > 0);
      expect(events).toEqual([{ type: "dataChanged", path }]);
      await zk.close();
    }, 40_000);
  }

  test("a killed server is left at once, and every watch is armed at the next, 1 MB of them", async () => {
    // However busy the machine is: a server that answers within 5 s is not left for another.
    const { zk, proxy } = await openAt(backend.nodes[1] as ServerNode, 30_000);
    const names = Array.from({ length: 6000 }, (_, index) => `/watched-${"x".repeat(180)}-${index}`);
    let fired = 0;
    await Promise.all(names.map((name) => zk.exists(name, { watch: () => fired++ })));
    proxy.refuse();
    proxy.cut();
    await eventually(() => zk.session.connections === 2);
    expect(zk.session.state).toBe("connected");
    await Promise.all(names.map((name) => zk.create(name, nothing, { mode: "ephemeral" })));
    expect(fired).toBe(names.length);
    await zk.close();
  }, 40_000);

  test(
    "a server that is read-only, alone of three, is no connection: not for a session, not for a new one",
    async () => {
      const zk = await open(backend.servers);
      const { path } = await zk.create("/read-only-", nothing, { mode: "ephemeralSequential" });
      const [alone, ...others] = backend.nodes as [ServerNode, ...ServerNode[]];
      await Promise.all(others.map((node) => node.kill()));
      await eventually(async () => await fourLetterWord(alone.address, "isro", 500) === "ro", {
        withinMs: 20_000,
        what: "a server that is read-only",
      });
      expect(zk.session.state).toBe("connecting");
      const refused = open(formatAddress(alone.address), { connectTimeoutMs: 1000 });
      await expect(refused).rejects.toMatchObject({ code: "UNREACHABLE" });
      await Promise.all(others.map((node) => node.restart()));
      await eventually(() => zk.session.state === "connected", {
        withinMs: 20_000,
        what: "the session to be connected",
      });
      expect((await zk.exists(path))?.ephemeralOwner).toBe(zk.session.id);
      await zk.close();
    },
    90_000,
  );
});
