import { describe, expect, test } from "bun:test";
import { zooKeeperOperations } from "../../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { settled } from "../../../support/fake_clock.ts";
import type { ScriptedServer } from "./scripted_ensemble.ts";
import { aNode, outcome, start, T } from "./session_rig.ts";

const remove = zooKeeperOperations.delete.code;
const closeSession = zooKeeperOperations.closeSession.code;
const cannotResume = (server: ScriptedServer) => server.password.fill(0);

describe("the end of a session", () => {
  test("comes when the server says that it has expired", async () => {
    const { clock, ensemble, zk } = await start(1);
    ensemble.server(1).session = "expired";
    ensemble.server(1).mode = "refuse";
    ensemble.server(1).connections[0]?.close();
    await settled();
    const queued = outcome(aNode(zk));
    ensemble.server(1).mode = "serve";
    await clock.advance(T / 10);
    expect(zk.session.state).toBe("ended");
    expect(zk.session.ended.reason).toHaveProperty("reason", "SESSIONEXPIRED");
    expect(queued.of).toBe("SESSIONEXPIRED");
    await expect(aNode(zk)).rejects.toHaveProperty("reason", "SESSIONEXPIRED");
  });

  test("comes when a server opens another session instead, which is left to expire", async () => {
    const { clock, ensemble, zk } = await start(1);
    const server = ensemble.server(1);
    server.session = "replaced";
    server.connections[0]?.close();
    await clock.advance(T / 10);
    expect(zk.session.ended.reason).toHaveProperty("reason", "SESSIONEXPIRED");
    expect(zk.session.ended.reason.message).toContain("cannot resume a session");
    expect(zk.session.id).toBe(0xabcn);
    expect(server.codes).toEqual([]);
    expect(server.connections.map(({ open }) => open)).toEqual([false, false]);
    expect(clock.timers).toBe(0);
  });

  test("comes with the connection where the password says that no session can be resumed", async () => {
    const { clock, ensemble, zk } = await start(2, { prepare: cannotResume });
    const queued = outcome(aNode(zk));
    ensemble.current.connections[0]?.close();
    await settled();
    expect(queued.of).toBe("CONNECTIONLOSS");
    expect(zk.session.ended.reason.message).toContain("cannot resume a session");
    expect(ensemble.dials.length).toBe(1);
    expect(clock.timers).toBe(0);
  });

  test("does not come from a server that is slow, where no session can be resumed: no other one is tried", async () => {
    const { clock, ensemble, zk } = await start(2, { prepare: cannotResume });
    ensemble.current.mode = "silent";
    const slow = outcome(aNode(zk));
    await clock.advance(T / 5);
    expect([zk.session.state, ensemble.dials.length]).toEqual(["doubtful", 1]);
    ensemble.current.wake();
    await settled();
    expect([zk.session.state, slow.of]).toEqual(["connected", null]);
  });

  test("is learnt from servers that were set up anew: they know less than was seen, and would only close", async () => {
    const { clock, ensemble, zk } = await start(2);
    for (const server of ensemble.servers) server.zxid = 500n;
    await zk.exists("/a");
    await clock.advance(5 * T); // nothing but pings
    for (const server of ensemble.servers) {
      server.zxid = 3n;
      server.isJealous = true;
      server.session = "expired";
      for (const connection of server.connections) connection.close();
    }
    await clock.advance(2 * T - 1000);
    expect(zk.session.state).toBe("connecting");
    const resumes = ensemble.servers.flatMap(({ hellos }) => hellos).filter(({ sessionId }) => sessionId !== 0n);
    expect(new Set(resumes.map(({ lastZxidSeen }) => lastZxidSeen))).toEqual(new Set([500n]));
    await clock.advance(2000);
    expect(zk.session.ended.reason).toHaveProperty("reason", "SESSIONEXPIRED");
  });

  test("is not taken from servers that lag: one that knows the session gets time until it knows as much", async () => {
    const { clock, ensemble, zk } = await start(1);
    const server = ensemble.server(1);
    server.zxid = 500n;
    await zk.exists("/a");
    Object.assign(server, { zxid: 499n, isJealous: true });
    server.connections[0]?.close();
    await clock.advance(4 * T);
    expect(server.hellos.some(({ lastZxidSeen }) => lastZxidSeen === 0n)).toBe(true);
    expect([zk.session.state, zk.session.connections]).toEqual(["connecting", 1]);
    server.zxid = 500n;
    await clock.advance(T);
    expect([zk.session.state, zk.session.connections]).toEqual(["connected", 2]);
  });

  test("leaves no timer behind", async () => {
    const { clock, ensemble, zk } = await start(2);
    ensemble.current.mode = "silent";
    aNode(zk).catch(() => {});
    await clock.advance(T / 5);
    await zk.close();
    expect(clock.timers).toBe(0);
  });

  test("close goes out behind the requests of the same turn, in one write, and ends the session", async () => {
    const { ensemble, zk } = await start(1);
    const released = zk.delete("/lock", -1);
    const closed = zk.close();
    await released;
    await closed;
    expect(ensemble.server(1).codes).toEqual([remove, closeSession]);
    expect(new Set(ensemble.server(1).heard.map(({ write }) => write)).size).toBe(1);
    expect(zk.session.state).toBe("ended");
    await expect(aNode(zk)).rejects.toHaveProperty("reason", "SESSIONEXPIRED");
  });

  test("close gives up after T/3 when nobody answers", async () => {
    const { clock, ensemble, zk } = await start(1);
    ensemble.server(1).mode = "silent";
    const closed = outcome(zk.close());
    await clock.advance(T / 3 - 1);
    expect(closed.of).toBe("pending");
    await clock.advance(1);
    expect(closed.of).toBeNull();
    expect(clock.timers).toBe(0);
  });

  test("close reaches the server over a new connection when the old one is cut", async () => {
    const { ensemble, zk } = await start(1);
    ensemble.server(1).mode = "silent";
    const closed = zk.close();
    await settled();
    ensemble.server(1).mode = "serve";
    ensemble.server(1).connections[0]?.close();
    await closed;
    expect(ensemble.server(1).codes).toEqual([closeSession, closeSession]);
  });
});
