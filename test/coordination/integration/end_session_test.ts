/** A session that is ended by another process than its own, on every implementation of the servers. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { connectToZooKeeper, type ZooKeeperConnectOptions } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { encodeSessionHandle, endSessionOfDeadProcess } from "../../../src/protocols/zookeeper/end_session.ts";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import {
  backends,
  describeBackend,
  keeper,
  type RunningBackend,
  zooKeeper,
  zooKeeperEnsemble,
} from "../../support/backends.ts";
import { ChaosProxy } from "../../support/chaos_proxy.ts";
import { eventually } from "../../support/eventually.ts";
import { QuietTime } from "../../support/quiet_time.ts";

setDefaultTimeout(60_000);

const nothing = new Uint8Array(0);
const clock = systemClock();
const options = (servers: string, more: Partial<ZooKeeperConnectOptions> = {}): ZooKeeperConnectOptions => ({
  servers: parseZooKeeperServers(servers),
  sessionTimeoutMs: 60_000,
  ...more,
});

for (const backend of [...backends, zooKeeperEnsemble]) {
  describeBackend(backend, () => {
    let server: RunningBackend;
    beforeAll(async () => void (server = await backend.start()), 60_000);
    afterAll(() => server.close());

    test("what it had is gone when the call is back, and the session has expired for its own client", async () => {
      const own = options(server.servers);
      const zk = await connectToZooKeeper(own);
      await using other = await connectToZooKeeper(own);
      const { path } = await zk.create("/mine-", nothing, { mode: "ephemeralSequential" });
      const handle = encodeSessionHandle(own, zk.session);
      expect(await endSessionOfDeadProcess(handle, { clock, limitMs: 10_000 })).toBe(true);
      await other.sync("/");
      expect(await other.exists(path)).toBeNull();
      // At its next sign of life: it may have come back for the moment before the end. A server that leaves its
      // connection open and does not answer is left after a third of the session timeout, 20 s.
      await eventually(() => zk.session.ended.aborted, { withinMs: 45_000 });
      expect(await endSessionOfDeadProcess(handle, { clock, limitMs: 10_000 })).toBe(true); // it has ended already
      await zk.close();
    });

    test("no other session is touched, also not with a password that is wrong", async () => {
      const own = options(server.servers);
      await using zk = await connectToZooKeeper(own);
      const { path } = await zk.create("/mine-", nothing, { mode: "ephemeralSequential" });
      const wrong = encodeSessionHandle(own, {
        id: zk.session.id,
        timeoutMs: 10_000,
        password: new Uint8Array(16).fill(7),
      });
      await endSessionOfDeadProcess(wrong, { clock, limitMs: 10_000 });
      // A real server cuts the session's connection off before it looks at the password.
      await eventually(async () => await zk.exists(path) !== null);
    });
  });
}

describeBackend(zooKeeperEnsemble, () => {
  test("one server that hangs and one that is gone are passed over", async () => {
    const server = await zooKeeperEnsemble.start();
    try {
      const leader = await server.leader();
      const [one, two] = server.nodes.filter((node) => node !== leader);
      await using zk = await connectToZooKeeper(options(server.servers));
      const [hanging, gone] = [one?.address, two?.address].map((address) => address ?? leader.address);
      if (hanging === undefined || gone === undefined) throw new Error("no address");
      const proxies = await Promise.all([hanging, gone, leader.address].map((address) => ChaosProxy.start(address)));
      proxies[0]?.blackHole();
      await proxies[1]?.close();
      const own = options(proxies.map(({ servers }) => servers).join(","));
      expect(await endSessionOfDeadProcess(encodeSessionHandle(own, zk.session), { clock, limitMs: 10_000 })).toBe(
        true,
      );
      for (const proxy of proxies) await proxy.close();
    } finally {
      await server.close();
    }
  });
});

describe("in vain, it is given up in time", () => {
  const session = { id: 1n, password: new Uint8Array(16), timeoutMs: 10_000 };

  test("where nobody listens, and where nobody answers", async () => {
    const server = await keeper.start();
    const [address] = server.nodes.map((node) => node.address);
    if (address === undefined) throw new Error("no address");
    const silent = await ChaosProxy.start(address);
    silent.blackHole();
    try {
      for (const servers of ["127.0.0.1:1", silent.servers]) {
        const quiet = new QuietTime();
        expect(await endSessionOfDeadProcess(encodeSessionHandle(options(servers), session), { clock, limitMs: 300 }))
          .toBe(false);
        expect(quiet.ms).toBeLessThan(2000);
      }
    } finally {
      await silent.close();
      await server.close();
    }
  });
});

describeBackend(zooKeeper, () => {
  test("servers that demand authentication are given the credentials; without them the request fails", async () => {
    const server = await zooKeeper.start({
      configLines: ["enforce.auth.enabled=true", "enforce.auth.schemes=digest"],
    });
    try {
      const own = options(server.servers, { auth: [{ scheme: "digest", credentials: "ann:secret" }] });
      await using other = await connectToZooKeeper(own);
      const zk = await connectToZooKeeper(own);
      const { path } = await zk.create("/mine-", nothing, { mode: "ephemeralSequential" });
      expect(await endSessionOfDeadProcess(encodeSessionHandle(own, zk.session), { clock, limitMs: 10_000 })).toBe(
        true,
      );
      await other.sync("/");
      expect(await other.exists(path)).toBeNull();
      await zk.close();
      const without = await connectToZooKeeper(own);
      const handle = encodeSessionHandle(options(server.servers), without.session);
      expect(await endSessionOfDeadProcess(handle, { clock, limitMs: 10_000 })).toBe(false);
      await without.close();
    } finally {
      await server.close();
    }
  });
});
