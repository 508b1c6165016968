/** Sessions: how they begin, go on over another connection, end, and what goes with them. */
import { describe, expect, test } from "bun:test";
import { createFlag } from "../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { eventually } from "../../support/eventually.ts";
import { QuietTime } from "../../support/quiet_time.ts";
import type { RawClient } from "../../support/raw_client.ts";
import { type Fixture, node, timing } from "./zookeeper_fixture.ts";

const ephemeral = { flags: createFlag.ephemeral };
const errOfExists = async (client: RawClient, path: string, watch = false) =>
  (await client.call("exists", { path, watch })).err;
const resumeOf = (client: RawClient) => {
  if (client.hello.passwd === null) throw new Error("The handshake gave no password");
  return { sessionId: client.sessionId, passwd: client.hello.passwd };
};

export function sessionsSuite(fixture: Fixture): void {
  test("the handshake answers in the shape it was asked in", async () => {
    const client = await fixture.connect({ readOnly: false });
    expect(client.hello).toMatchObject({ length: 37, protocolVersion: 0, timeOut: 10_000, readOnly: false });
    expect(client.hello.passwd?.byteLength).toBe(16);
    expect(client.sessionId).not.toBe(0n);
    const old = await fixture.connect({ readOnly: undefined });
    expect(old.hello).toMatchObject({ length: 36, readOnly: undefined });
    const readOnly = await fixture.connect({ readOnly: true });
    expect(readOnly.hello.readOnly).toBe(false);
    expect(new Set([client, old, readOnly].map((each) => each.sessionId)).size).toBe(3);
  });

  test.each([
    [1, timing.sessionTimeoutMinMs],
    [5000, 5000],
    [3_000_000, timing.sessionTimeoutMaxMs],
  ])("a timeout of %d ms is negotiated to %d ms", async (timeoutMs, expected) => {
    expect((await fixture.connect({ timeoutMs })).hello.timeOut).toBe(expected);
  });

  test("goes on over a second connection: same id, new timeout, the first connection closed", async () => {
    const first = await fixture.connect();
    const root = await fixture.root(first);
    await first.call("create", node(`${root}/e`, ephemeral));
    const second = await fixture.connect({ ...resumeOf(first), timeoutMs: 4000 });
    expect(second.hello).toMatchObject({ sessionId: first.sessionId, timeOut: 4000 });
    expect(second.hello.passwd).toEqual(first.hello.passwd);
    await first.closed;
    expect((await second.call("exists", { path: `${root}/e`, watch: false })).value?.stat.ephemeralOwner)
      .toBe(first.sessionId);
  });

  test("goes on after its connection is gone, and keeps its ephemerals", async () => {
    const first = await fixture.connect();
    const root = await fixture.root(first);
    await first.call("create", node(`${root}/e`, ephemeral));
    await first.drop();
    const second = await fixture.connect(resumeOf(first));
    expect(second.sessionId).toBe(first.sessionId);
    expect(await errOfExists(second, `${root}/e`)).toBe(0);
  });

  test("watches do not move to the next connection", async () => {
    const first = await fixture.connect();
    const root = await fixture.root(first);
    await first.call("getData", { path: root, watch: true });
    const second = await fixture.connect(resumeOf(first));
    await second.call("setData", { path: root, data: null, version: -1 });
    expect(await second.takeEvents()).toEqual([]);
  });

  test("a wrong password is refused with timeout 0, and the connection closed", async () => {
    const live = await fixture.connect();
    const intruder = await fixture.connect({ sessionId: live.sessionId, passwd: new Uint8Array(16).fill(7) });
    expect(intruder.hello).toMatchObject({ timeOut: 0, sessionId: 0n, passwd: new Uint8Array(16) });
    await intruder.closed;
    if (fixture.backend.kind === "zookeeper") {
      await live.closed; // 3.8.0 replaces the connection first and checks the password afterwards
    } else {
      expect((await live.ping()).err).toBe(0);
    }
  });

  test("an unknown session is refused with timeout 0, and the connection closed", async () => {
    const client = await fixture.connect({ sessionId: 0x1234567890n });
    expect(client.hello).toMatchObject({ timeOut: 0, sessionId: 0n });
    await client.closed;
  });

  test("a client that has seen more than the server is turned away without an answer", async () => {
    const client = await fixture.open();
    await expect(client.handshake({ lastZxidSeen: 0x7000000000000000n })).rejects.toThrow("instead of answering");
  });

  test("closeSession deletes the ephemerals, tells watchers, answers, and closes", async () => {
    const watcher = await fixture.connect();
    const root = await fixture.root(watcher);
    const client = await fixture.connect();
    await client.call("create", node(`${root}/e`, ephemeral));
    expect(await errOfExists(watcher, `${root}/e`, true)).toBe(0);
    const reply = await client.send(-11);
    expect(reply.err).toBe(0);
    expect(await errOfExists(watcher, `${root}/e`)).toBe(-101);
    expect(await watcher.takeEvents()).toEqual([`2:${root}/e`]);
    await client.closed;
    const again = await fixture.connect(resumeOf(client));
    expect(again.hello.timeOut).toBe(0);
  });

  test("expires between T and T + 2 ticks after its connection was lost, its ephemerals with it", async () => {
    const watcher = await fixture.connect();
    const root = await fixture.root(watcher);
    const client = await fixture.connect({ timeoutMs: 1000 });
    await client.call("create", node(`${root}/e`, ephemeral));
    await errOfExists(watcher, `${root}/e`, true);
    const quiet = new QuietTime();
    await client.ping();
    await client.drop();
    await eventually(() => watcher.events.includes(`2:${root}/e`), {
      withinMs: 5000,
      what: "the end of the ephemeral",
    });
    expect(quiet.elapsedMs).toBeGreaterThanOrEqual(1000);
    expect(quiet.ms).toBeLessThan(1000 + 2 * timing.tickTimeMs + 500);
    const again = await fixture.connect(resumeOf(client));
    expect(again.hello.timeOut).toBe(0);
  });

  test("an idle connection is closed at expiry, without a word", async () => {
    const client = await fixture.connect({ timeoutMs: timing.sessionTimeoutMinMs });
    await client.closed;
    expect(client.arrivals).toEqual([]);
  });

  test("any request keeps it alive", async () => {
    const client = await fixture.connect({ timeoutMs: timing.sessionTimeoutMinMs });
    const startMs = performance.now();
    await eventually(async () => {
      await client.call("exists", { path: "/", watch: false });
      return performance.now() - startMs > 3 * timing.sessionTimeoutMinMs;
    }, { everyMs: 50 });
    expect(client.isClosed).toBe(false);
  });

  describe("over a server's restart", () => {
    test(
      "sessions, ephemerals, czxids and sequences survive SIGKILL; each session gets its full time again",
      async () => {
        const running = await fixture.backend.start(timing);
        try {
          const [server] = running.nodes;
          if (server === undefined) throw new Error("no node");
          const { RawClient } = await import("../../support/raw_client.ts");
          const first = fixture.keep(await RawClient.connect(server.address, { timeoutMs: 1500 }));
          const dead = fixture.keep(await RawClient.connect(server.address, { timeoutMs: 1500 }));
          const made = await first.call("create2", node("/e", ephemeral));
          await first.call("create", node("/s"));
          await first.call("create", node("/s/a-", { flags: createFlag.persistentSequential }));
          await dead.call("create", node("/dead", ephemeral));
          await server.kill();
          const deadMs = performance.now();
          await server.restart();
          const second = fixture.keep(await RawClient.connect(server.address, { ...resumeOf(first), timeoutMs: 1500 }));
          expect(second.sessionId).toBe(first.sessionId);
          const stat = (await second.call("exists", { path: "/e", watch: false })).value?.stat;
          expect(stat).toEqual(made.value?.stat);
          const next = await second.call("create", node("/s/a-", { flags: createFlag.persistentSequential }));
          expect(next.value?.path).toBe("/s/a-0000000001");
          expect(next.zxid).toBeGreaterThan(made.zxid);
          await eventually(async () => await errOfExists(second, "/dead") === -101, { withinMs: 10_000, everyMs: 20 });
          // A server that counted on from before its end would have ended the session by then.
          expect(performance.now() - deadMs).toBeGreaterThan(1500);
        } finally {
          await running.close();
        }
      },
      60_000,
    );
  });
}
