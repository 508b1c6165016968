import { describe, expect, test } from "bun:test";
import { connectToZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../../src/protocols/zookeeper/hosts.ts";
import type { Dial } from "../../../../src/base/sockets/connection.ts";
import { zooKeeperOperations } from "../../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { FakeClock, settled } from "../../../support/fake_clock.ts";
import { ScriptedEnsemble } from "./scripted_ensemble.ts";
import { aNode, start, T } from "./session_rig.ts";

const ping = zooKeeperOperations.ping.code;
const sync = zooKeeperOperations.sync.code;
const closeSession = zooKeeperOperations.closeSession.code;
const exists = zooKeeperOperations.exists.code;

describe("a healthy session", () => {
  test("is pinged after T/12 without a send", async () => {
    const { clock, ensemble } = await start(1);
    await clock.advance(T / 12 - 1);
    expect(ensemble.server(1).codes).toEqual([]);
    await clock.advance(1);
    expect(ensemble.server(1).codes).toEqual([ping]);
    await clock.advance(T);
    expect(ensemble.server(1).codes).toEqual(Array(13).fill(ping));
  });

  test("has a lease that no ping and no read moves: a follower that is cut off answers both", async () => {
    const { clock, zk } = await start(1);
    const endMs = zk.session.leaseEndMs();
    expect(endMs).toBe(clock.now() + T - 500);
    for (let i = 0; i < 20; i++) {
      await clock.advance(T / 10);
      await zk.exists("/a");
    }
    expect(zk.session.leaseEndMs()).toBe(endMs);
  });

  test("asks the leader at every heartbeat while it is guarded, and its lease follows", async () => {
    const { clock, ensemble, zk } = await start(1);
    const startMs = clock.now();
    const unguard = zk.session.guard();
    ensemble.server(1).timeoutMs = T; // its shortest
    await clock.advance(T);
    expect(ensemble.server(1).codes.filter((code) => code !== closeSession)).toEqual(Array(12).fill(sync));
    expect(zk.session.leaseEndMs()).toBe(startMs + T - T / 4 + T - 500);
    unguard();
    await clock.advance(T / 12);
    expect(ensemble.server(1).codes.at(-1)).toBe(ping);
  });

  test("asks once for the shortest timeout of the servers, while guarded; a short tick costs less lease", async () => {
    const { clock, ensemble, zk } = await start(1);
    const startMs = clock.now();
    await clock.advance(T / 2);
    expect(ensemble.server(1).hellos.length).toBe(1);
    ensemble.server(1).timeoutMs = 900;
    zk.session.guard();
    await clock.advance(T);
    expect(ensemble.server(1).hellos.map(({ timeOut, sessionId }) => [timeOut, sessionId === 0n])).toEqual([
      [T, true],
      [1, true],
    ]);
    expect(ensemble.server(1).connections.map(({ open }) => open)).toEqual([true, false]);
    expect(ensemble.server(1).codes.filter((code) => code === closeSession).length).toBe(1);
    expect(zk.session.timeoutMs).toBe(T);
    expect(zk.session.leaseEndMs()).toBe(startMs + 1.5 * T - 1000 + T - 500);
  });

  test("does not keep the connection it asked by when the goodbye is not answered", async () => {
    const ensemble = new ScriptedEnsemble(1);
    const dial: Dial = async (...attempt) => {
      const connection = await ensemble.dial(...attempt);
      if (ensemble.dials.length === 1) return connection;
      let writes = 0;
      return { ...connection, write: (bytes) => void (writes++ === 0 && connection.write(bytes)) };
    };
    const { clock, zk } = await start(1, { dial });
    zk.session.guard();
    await clock.advance(T);
    expect(ensemble.server(1).connections.map(({ open }) => open)).toEqual([true, false]);
    expect(ensemble.server(1).codes).not.toContain(closeSession);
  });

  test("asks the leader however much is read in between: no read proves anything", async () => {
    const { clock, ensemble, zk } = await start(1);
    ensemble.server(1).timeoutMs = T;
    zk.session.guard();
    const endMs = zk.session.leaseEndMs();
    for (let i = 0; i < 80; i++) {
      await clock.advance(T / 40);
      await zk.exists("/a");
    }
    const syncs = ensemble.server(1).codes.filter((code) => code === sync).length;
    expect(syncs).toBeGreaterThanOrEqual(20);
    expect(zk.session.leaseEndMs()).toBeGreaterThanOrEqual(endMs + 2 * T - T / 4 - T / 10);
  });

  test("keeps its lease in a process that is never on time", async () => {
    const { clock, zk } = await start(1);
    const unguard = zk.session.guard();
    const endMs = zk.session.leaseEndMs();
    for (let i = 0; i < 40; i++) {
      clock.stall(T / 6);
      clock.runDue();
      await settled();
    }
    expect(zk.session.leaseEndMs()).toBeGreaterThan(endMs + T);
    unguard();
  });

  test("pings a server that stands alone, guarded or not: a sync would wait for its disk", async () => {
    const { clock, ensemble, zk } = await start(1, { servers: parseZooKeeperServers("unix:/keeper.1") });
    zk.session.guard();
    await clock.advance(T);
    expect(new Set(ensemble.server(1).codes)).toEqual(new Set([ping]));
    expect(zk.session.leaseEndMs()).toBe(clock.now() + T - 500);
  });

  test("with a server that stands alone has a lease that every answer moves", async () => {
    const { clock, zk } = await start(1, { servers: parseZooKeeperServers("unix:/keeper.1") });
    await clock.advance(T);
    expect(zk.session.leaseEndMs()).toBe(clock.now() + T - 500);
  });

  test("is not pinged while requests go out", async () => {
    const { clock, ensemble, zk } = await start(1);
    for (let i = 0; i < 20; i++) {
      await clock.advance(T / 20);
      await zk.exists("/a");
    }
    expect(ensemble.server(1).codes).toEqual(Array(20).fill(exists));
  });

  test("sends the requests of one turn in one write, numbered from 1", async () => {
    const { ensemble, zk } = await start(1);
    await Promise.all([zk.exists("/a"), zk.exists("/b"), aNode(zk)]);
    expect(ensemble.server(1).heard.map(({ xid, write }) => [xid, write])).toEqual([[1, 2], [2, 2], [3, 2]]);
  });

  test("has at most 1,000 requests on the way, and queues the rest", async () => {
    const { ensemble, zk } = await start(1);
    ensemble.server(1).mode = "silent";
    const all = Promise.all(Array.from({ length: 5000 }, () => zk.exists("/a")));
    await settled();
    expect(ensemble.server(1).heard.length).toBe(1000);
    ensemble.server(1).wake();
    expect((await all).length).toBe(5000);
  });

  test("uses the timeout that the server grants", async () => {
    const clock = new FakeClock();
    const ensemble = new ScriptedEnsemble(1);
    ensemble.server(1).timeoutMs = 20_000;
    const zk = await connectToZooKeeper({ servers: parseZooKeeperServers(ensemble.text), clock, dial: ensemble.dial });
    expect(zk.session.timeoutMs).toBe(20_000);
    expect(zk.session.leaseEndMs()).toBe(clock.now() + 20_000 - 1000);
  });
});
