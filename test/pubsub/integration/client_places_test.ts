/** Where a real server is, and what it takes: IPv6, names that move, short requests, quotas. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { connectToZooKeeper, type ZooKeeperConnectOptions } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import type { WatchEvent, ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { dial } from "../../../src/base/sockets/dial.ts";
import { describeBackend, type RunningBackend, type ServerNode, zooKeeper } from "../../support/backends.ts";
import { ChaosProxy } from "../../support/chaos_proxy.ts";
import { eventually } from "../../support/eventually.ts";

const nothing = new Uint8Array(0);
/** The server's jute.maxbuffer, in bytes: a sixteenth of what it is by default. */
const frameBytesMax = 0xffff;

describeBackend(zooKeeper, () => {
  let backend: RunningBackend;
  let port = 0;
  beforeAll(async () => {
    backend = await zooKeeper.start({
      configLines: ["clientPortAddress=::", "enforceQuota=true"],
      javaProperties: { "jute.maxbuffer": String(frameBytesMax), "java.net.preferIPv6Addresses": "true" },
    });
    const { address } = backend.nodes[0] ?? {};
    port = address?.kind === "tcp" ? address.port : 0;
  }, 40_000);
  afterAll(() => backend.close());

  const open = (servers: string, options: Partial<ZooKeeperConnectOptions> = {}): Promise<ZooKeeper> =>
    connectToZooKeeper({ servers: parseZooKeeperServers(servers), connectTimeoutMs: 10_000, ...options });

  test("an IPv6 address in brackets, with a chroot behind it", async () => {
    await using zk = await open(`[::1]:${port}/six`);
    expect((await zk.create("/a", nothing)).path).toBe("/a");
    await using other = await open(`127.0.0.1:${port}`);
    expect((await other.getChildren("/six")).children).toEqual(["a"]);
  });

  test("a name is looked up again in each round, and all of its addresses are tried", async () => {
    const answers = [["127.0.0.2"], ["127.0.0.3", "127.0.0.2"], ["127.0.0.2", "::1"]];
    const asked: string[] = [];
    const proxy = await ChaosProxy.start({ kind: "tcp", host: "::1", port });
    try {
      await using zk = await open(`zk.example:${port}`, {
        resolve: (host) => Promise.resolve(answers[Math.min(asked.push(host), answers.length) - 1] ?? []),
        // Nobody listens anywhere but at ::1: the server itself is at every address of this machine.
        dial: async (address, ...rest) => {
          if (address.kind === "tcp" && address.host === "::1") return await dial(proxy.address, ...rest);
          throw Object.assign(new Error("refused"), { code: "ECONNREFUSED" });
        },
      });
      expect(asked).toEqual(Array(3).fill("zk.example"));
      proxy.cut();
      await eventually(() => zk.session.connections === 2);
      expect(asked).toHaveLength(4);
    } finally {
      await proxy.close();
    }
  });

  test("a request longer than the server takes costs a connection, but no session; a client can avoid it", async () => {
    await using zk = await open(`127.0.0.1:${port}`);
    const { path } = await zk.create("/short-", nothing, { mode: "ephemeralSequential" });
    const long = new Uint8Array(frameBytesMax);
    const ended = await Promise.allSettled([zk.setData(path, nothing, -1), zk.setData(path, long, -1)]);
    expect(ended[1]).toMatchObject({ status: "rejected", reason: { reason: "CONNECTIONLOSS" } });
    const found = await zk.exists(path);
    expect([found?.ephemeralOwner, found?.dataLength]).toEqual([zk.session.id, 0]);
    expect(zk.session.connections).toBe(2);

    await using knowing = await open(`127.0.0.1:${port}`, { frameBytesMax });
    const refused = knowing.setData(path, long, -1);
    await expect(refused).rejects.toMatchObject({
      code: "BAD_DATA",
      message: expect.stringContaining("connect.max_request_size, jute.maxbuffer of the servers"),
    });
    expect(knowing.session.connections).toBe(1);
  });

  test("watches that take more than one short request are all set again", async () => {
    const proxy = await ChaosProxy.start({ kind: "tcp", host: "127.0.0.1", port });
    try {
      await using zk = await open(proxy.servers, { frameBytesMax });
      await using other = await open(`127.0.0.1:${port}`);
      const names = Array.from({ length: 1500 }, (_, index) => `/again-${"x".repeat(100)}-${index}`);
      const events: WatchEvent[] = [];
      await Promise.all(names.map((name) => zk.exists(name, { watch: (event) => events.push(event) })));
      proxy.cut();
      await eventually(() => zk.session.connections === 2);
      await zk.exists("/");
      await Promise.all(names.map((name) => other.create(name, nothing, { mode: "ephemeral" })));
      await eventually(() => events.length >= names.length, { what: "all events" });
      await zk.exists("/");
      expect([zk.session.connections, events.length]).toEqual([2, names.length]);
    } finally {
      await proxy.close();
    }
  }, 20_000);

  test("a quota that is used up is told by its name, and the connection goes on", async () => {
    await using zk = await open(`127.0.0.1:${port}`);
    await zk.create("/few", nothing);
    await zk.create("/zookeeper/quota/few", nothing);
    const limits = "count=2,bytes=-1=;byteHardLimit=-1;countHardLimit=2";
    await zk.create("/zookeeper/quota/few/zookeeper_limits", new TextEncoder().encode(limits));
    await zk.create("/zookeeper/quota/few/zookeeper_stats", new TextEncoder().encode("count=1,bytes=0"));
    await zk.create("/few/a", nothing);
    await expect(zk.create("/few/b", nothing)).rejects.toMatchObject({ reason: "QUOTAEXCEEDED", code: "REFUSED" });
    expect(zk.session.connections).toBe(1);
  });

  test("servers that were set up anew under a session end it, though they have seen less than it has", async () => {
    const anew = await zooKeeper.start();
    try {
      const proxy = await ChaosProxy.start((backend.nodes[0] as ServerNode).address);
      let { address } = proxy;
      await using zk = await open("127.0.0.1:1", {
        sessionTimeoutMs: 1500,
        dial: (_, ...rest) => dial(address, ...rest),
      });
      for (let times = 0; times < 20; times++) await zk.create("/seen-", nothing, { mode: "ephemeralSequential" });
      address = (anew.nodes[0] as ServerNode).address;
      await proxy.close();
      await eventually(() => zk.session.state === "ended", { withinMs: 10_000, what: "the session to end" });
      expect(zk.session.ended.reason).toHaveProperty("reason", "SESSIONEXPIRED");
    } finally {
      await anew.close();
    }
  }, 40_000);
});
