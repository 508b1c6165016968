import { describe, expect, test } from "bun:test";
import { ByteReader, ByteWriter } from "../../../../src/base/wire/bytes.ts";
import { zooKeeperOperations } from "../../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { SetWatchesRequest } from "../../../../src/protocols/zookeeper/jute/zookeeper_records.ts";
import { settled } from "../../../support/fake_clock.ts";
import type { ZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper.ts";
import type { ScriptedConnection } from "./scripted_ensemble.ts";
import { aNode, outcome, start, T } from "./session_rig.ts";

const ping = zooKeeperOperations.ping.code;
const exists = zooKeeperOperations.exists.code;
const remove = zooKeeperOperations.delete.code;
const setWatches = zooKeeperOperations.setWatches.code;

describe("a server that stops answering", () => {
  test("is doubted at T/6, and the session moves to another server that accepts it", async () => {
    const { clock, ensemble, zk, states } = await start(3);
    const frozen = ensemble.current;
    frozen.mode = "silent";
    const lost = outcome(aNode(zk));
    await clock.advance(T / 6 - 1);
    expect(zk.session.state).toBe("connected");
    const doubtMs = clock.now() + 1;
    await clock.advance(1);
    expect(states).toEqual(["doubtful", "connected"]);
    expect(zk.session.connections).toBe(2);
    expect(frozen.connections[0]?.open).toBe(false);
    expect(lost.of).toBe("CONNECTIONLOSS");
    expect(zk.session.leaseEndMs()).toBe(doubtMs + T - 500);
    expect(ensemble.current.hellos[0]?.sessionId).toBe(zk.session.id);
    expect(ensemble.others.filter((server) => server.hellos.length > 1)).toEqual([]);
  });

  test("keeps its connection while nobody else accepts, and is trusted again when it answers before T/3", async () => {
    const { clock, ensemble, zk, states } = await start(3);
    const slow = ensemble.current;
    for (const server of ensemble.servers) server.mode = "silent";
    const late = outcome(aNode(zk));
    await clock.advance(T / 4);
    expect(zk.session.state).toBe("doubtful");
    slow.wake();
    await settled();
    expect(late.of).toBeNull();
    expect(states).toEqual(["doubtful", "connected"]);
    expect(zk.session.connections).toBe(1);
    expect(slow.connections[0]?.open).toBe(true);
  });

  test("that answers while it is doubted shows more than the next server may know, which is asked again", async () => {
    const { clock, ensemble, zk } = await start(2);
    const slow = ensemble.current;
    const [behind] = ensemble.others;
    for (const server of ensemble.servers) server.mode = "silent";
    const answered = outcome(aNode(zk));
    const late = outcome(aNode(zk));
    await clock.advance(T / 6);
    const reply = new ByteWriter();
    for (const value of [16, 1]) reply.i32(value);
    reply.i64(200n);
    reply.i32(0);
    slow.connections[0]?.send(reply.finish());
    await settled();
    expect([answered.of, late.of, zk.session.state]).toEqual([null, "pending", "doubtful"]);
    behind?.wake();
    await clock.advance(T / 20);
    expect(behind?.hellos.map(({ lastZxidSeen }) => lastZxidSeen)).toEqual([0n, 200n]);
    expect([late.of, zk.session.state, zk.session.connections]).toEqual(["CONNECTIONLOSS", "connected", 2]);
    expect(behind?.connections.map(({ open }) => open)).toEqual([false, true]);
  });

  test("gets no more requests while it is doubted: they are not done, and go to the next server", async () => {
    const { clock, ensemble, zk } = await start(2);
    for (const server of ensemble.servers) server.mode = "silent";
    const slow = ensemble.current;
    outcome(aNode(zk));
    await clock.advance(T / 6);
    const held = outcome(zk.exists("/b"));
    expect(slow.codes).toEqual([remove]);
    slow.mode = "refuse";
    for (const server of ensemble.servers) if (server !== slow) server.wake();
    await clock.advance(T / 6);
    expect(held.of).toBeNull();
    expect(slow.codes).toEqual([remove]);
  });

  test("is dropped at T/3, and what was on the way fails", async () => {
    const { clock, ensemble, zk, states } = await start(1);
    ensemble.server(1).mode = "silent";
    const lost = outcome(aNode(zk));
    await clock.advance(T / 3 - 1);
    expect([lost.of, zk.session.state]).toEqual(["pending", "doubtful"]);
    await clock.advance(1);
    expect([lost.of, zk.session.state]).toEqual(["CONNECTIONLOSS", "connecting"]);
    expect(ensemble.server(1).connections[0]?.open).toBe(false);
    expect(states).toEqual(["doubtful", "connecting"]);
  });

  test("is noticed by a ping alone: doubt at T/4, drop at 5T/12 after the last answer", async () => {
    const { clock, ensemble, zk } = await start(1);
    ensemble.server(1).mode = "silent";
    await clock.advance(T / 4 - 1);
    expect(zk.session.state).toBe("connected");
    await clock.advance(1);
    expect(zk.session.state).toBe("doubtful");
    await clock.advance(T / 6);
    expect(zk.session.state).toBe("connecting");
  });

  test("is dialled again in the moment it is dropped", async () => {
    const { clock, ensemble, zk } = await start(1);
    ensemble.server(1).mode = "silent";
    outcome(aNode(zk));
    await clock.advance(T / 3 - 1);
    ensemble.server(1).mode = "serve";
    await clock.advance(1);
    expect([zk.session.state, zk.session.connections]).toEqual(["connected", 2]);
  });

  test("never extends the lease", async () => {
    const { clock, ensemble, zk } = await start(1);
    const endMs = zk.session.leaseEndMs();
    ensemble.server(1).mode = "silent";
    await clock.advance(T);
    expect(zk.session.leaseEndMs()).toBe(endMs);
  });

  test("is given one turn to be read when this process was stopped itself", async () => {
    const { clock, ensemble, zk } = await start(1);
    await clock.advance(T / 12 - 1);
    ensemble.server(1).mode = "silent";
    await clock.advance(1); // the ping is out
    const connection = ensemble.server(1).connections[0] as ScriptedConnection;
    ensemble.server(1).mode = "serve";
    // When the process goes on, timers run before what has arrived is read.
    clock.stall(T / 2);
    clock.runDue();
    connection.catchUp();
    await clock.advance(0);
    expect(zk.session.connections).toBe(1);
    expect(zk.session.state).toBe("connected");
  });
});

describe("a lost connection", () => {
  test("is made again at once with the session's id, password and last zxid", async () => {
    const { ensemble, zk } = await start(1);
    ensemble.server(1).zxid = 77n;
    await zk.exists("/a");
    ensemble.server(1).connections[0]?.event(3, "/a"); // an event's zxid is -1
    await settled();
    ensemble.server(1).connections[0]?.close();
    await settled();
    expect(zk.session.state).toBe("connected");
    expect(zk.session.connections).toBe(2);
    const hello = ensemble.server(1).hellos[1];
    expect([hello?.sessionId, hello?.passwd?.[0], hello?.lastZxidSeen]).toEqual([zk.session.id, 9, 77n]);
  });

  test("is made again at a bearable rate by a server that takes the session and breaks off every time", async () => {
    const { clock, ensemble, zk } = await start(1);
    await zk.exists("/a", { watch() {} });
    const server = ensemble.server(1);
    server.answer = ({ code }) => {
      if (code !== zooKeeperOperations.setWatches.code) return undefined;
      if (server.hellos.length > 1000) server.mode = "refuse"; // or a storm would never end
      return { err: -125 };
    };
    server.connections[0]?.close();
    await clock.advance(T);
    expect(server.hellos.length).toBeLessThan(200);
    server.answer = () => undefined;
    await clock.advance(T / 10);
    expect(zk.session.state).toBe("connected");
  });

  test("counts the ConnectRequest as answered when the session is resumed", async () => {
    const { clock, ensemble, zk } = await start(1);
    await clock.advance(T / 10);
    ensemble.server(1).connections[0]?.close();
    await settled();
    expect(zk.session.leaseEndMs()).toBe(clock.now() + T - 500);
  });

  test("fails what was on the way as unknown, and what waited too long as not done", async () => {
    const { clock, ensemble, zk } = await start(1);
    ensemble.server(1).mode = "silent";
    const sent = outcome(aNode(zk));
    await settled();
    ensemble.server(1).mode = "refuse";
    ensemble.server(1).connections[0]?.close();
    await settled();
    const queued = outcome(aNode(zk));
    expect(sent.of).toBe("CONNECTIONLOSS");
    await clock.advance(T - 1);
    expect(queued.of).toBe("pending");
    await clock.advance(1);
    expect(queued.of).toBe("OPERATIONTIMEOUT");
    ensemble.server(1).mode = "serve";
    await clock.advance(T);
    expect(ensemble.server(1).codes.filter((code) => code === remove).length).toBe(1);
  });

  test("lets no request out whose time is over, however late the timers are", async () => {
    const { clock, ensemble, zk } = await start(1);
    ensemble.server(1).mode = "silent";
    ensemble.server(1).connections[0]?.close();
    await settled();
    const queued = outcome(aNode(zk));
    clock.stall(T);
    ensemble.server(1).wake(); // the session is resumed before any timer runs
    await settled();
    expect([zk.session.state, queued.of]).toEqual(["connected", "OPERATIONTIMEOUT"]);
    expect(ensemble.server(1).codes).toEqual([]);
  });

  test("arms the watches again before anything else, and they fire once", async () => {
    const { clock, ensemble, zk } = await start(1);
    const events: string[] = [];
    await zk.exists("/a", { watch: ({ type, path }) => events.push(`${type} ${path}`) });
    ensemble.server(1).mode = "refuse";
    ensemble.server(1).connections[0]?.close();
    await settled();
    const next = zk.exists("/b");
    ensemble.server(1).mode = "serve";
    await clock.advance(T / 10);
    await next;
    expect(ensemble.server(1).codes.filter((code) => code !== ping)).toEqual([exists, setWatches, exists]);
    const connection = ensemble.server(1).connections[1] as ScriptedConnection;
    connection.event(1, "/a");
    connection.event(1, "/a");
    await settled();
    expect(events).toEqual(["created /a"]);
  });

  test("that breaks again while watches are armed loses none: an answer to some is none for the others", async () => {
    const { ensemble, zk } = await start(1);
    const server = ensemble.server(1);
    const names = Array.from({ length: 400 }, (_, index) => `/${"x".repeat(200)}${index}`);
    server.zxid = 100n;
    await Promise.all(names.map((name) => zk.exists(name, { watch() {} })));
    // The server has gone on. It answers the first request with what it knows now, and is gone before the others.
    server.zxid = 200n;
    let answered = 0;
    server.answer = ({ code, connection }) => {
      if (code === setWatches && ++answered === 2) queueMicrotask(() => connection.close());
      return undefined;
    };
    server.connections[0]?.close();
    await settled();
    server.answer = () => undefined;
    await settled();
    expect(zk.session.connections).toBe(3);
    const armed = server.heard.filter(({ code, connection }) => {
      return code === setWatches && connection === server.connections[2];
    }).map(({ body }) => SetWatchesRequest.read(new ByteReader(body)));
    const since = (zxid: bigint) =>
      armed.flatMap(({ relativeZxid, existWatches }) => relativeZxid === zxid ? existWatches ?? [] : []);
    expect(since(200n).length).toBeGreaterThan(100);
    expect([...since(200n), ...since(100n)]).toEqual(names);
    expect(since(100n).length).toBeGreaterThan(100);
  });

  test("tries servers that are slow to answer in turn, not only the first", async () => {
    const { clock, ensemble, zk } = await start(3);
    const first = ensemble.current;
    for (const server of ensemble.servers) if (server !== first) server.mode = "silent";
    const [second, third] = ensemble.others;
    first.mode = "refuse";
    first.connections[0]?.close();
    await clock.advance(T / 24);
    expect([second?.hellos.length, third?.hellos.length]).toEqual([1, 1]);
    third?.wake();
    await settled();
    expect(zk.session.state).toBe("connected");
  });

  test("waits between rounds, and takes longer and longer", async () => {
    const { clock, ensemble } = await start(1);
    ensemble.server(1).mode = "refuse";
    ensemble.server(1).connections[0]?.close();
    await clock.advance(T);
    const early = ensemble.dials.length;
    expect(early).toBeGreaterThan(5);
    expect(early).toBeLessThan(200);
  });
});

describe("a caller's signal", () => {
  test("takes a request out of the queue before it is sent", async () => {
    const { clock, ensemble, zk } = await start(1);
    ensemble.server(1).mode = "refuse";
    ensemble.server(1).connections[0]?.close();
    await settled();
    const giveUp = new AbortController();
    const request = outcome(zk.delete("/a", -1, { signal: giveUp.signal }));
    const reason = new Error("enough");
    giveUp.abort(reason);
    await settled();
    expect(request.of).toBe(reason);
    ensemble.server(1).mode = "serve";
    await clock.advance(T);
    expect(ensemble.server(1).codes).not.toContain(remove);
  });

  test("does not disturb the order of replies when the request is on the way", async () => {
    const { ensemble, zk } = await start(1);
    ensemble.server(1).mode = "silent";
    const giveUp = new AbortController();
    const given = outcome(zk.delete("/a", -1, { signal: giveUp.signal }));
    const kept = outcome(zk.exists("/a"));
    await settled();
    giveUp.abort(new Error("enough"));
    ensemble.server(1).wake();
    await settled();
    expect(given.of).toBeInstanceOf(Error);
    expect(kept.of).toBeNull();
  });
});

describe("a server that breaks the protocol", () => {
  test("answers out of order: the connection is dropped and made again", async () => {
    const { ensemble, zk } = await start(1);
    ensemble.server(1).mode = "silent";
    const lost = outcome(aNode(zk));
    await settled();
    ensemble.server(1).mode = "serve";
    ensemble.server(1).connections[0]?.send(new Uint8Array([0, 0, 0, 16, 0, 0, 0, 9, ...Array(12).fill(0)]));
    await settled();
    expect(lost.of).toBe("CONNECTIONLOSS");
    expect(zk.session.connections).toBe(2);
  });

  test("sends an error nobody knows: a typed error with its number", async () => {
    const { ensemble, zk } = await start(1);
    ensemble.server(1).answer = () => ({ err: -9999 });
    await expect(aNode(zk)).rejects.toHaveProperty("reason", -9999);
    ensemble.server(1).answer = () => undefined;
    expect(await zk.exists("/a")).toBeNull();
  });

  test("sends a body that cannot be read: the request fails and the connection is made again", async () => {
    const { ensemble, zk } = await start(1);
    ensemble.server(1).answer = ({ code }) => code === exists ? { err: 0, body: (writer) => writer.i32(1) } : undefined;
    const failed = outcome(zk.exists("/a"));
    await settled();
    expect(failed.of).toBe("CONNECTIONLOSS");
    expect(zk.session.connections).toBe(2);
  });
});

describe("a server whose disk is slow", () => {
  const slowDisk = async (options: Parameters<typeof start>[1] = {}) => {
    const rig = await start(1, options);
    rig.ensemble.server(1).isSlow = (code) => code === remove;
    return rig;
  };

  /** Repeats a write until it is answered. */
  async function write(zk: ZooKeeper): Promise<number> {
    for (let tries = 1;; tries++) {
      const isDone = await aNode(zk).then(() => true, () => false);
      if (isDone) return tries;
    }
  }

  test("gets twice the time with each connection, and heartbeats meanwhile, until a write is answered", async () => {
    const { clock, ensemble, zk } = await slowDisk();
    const writing = outcome(write(zk));
    const server = ensemble.server(1);
    const connectionsAt: number[] = [];
    for (const ms of [T / 3, (2 * T) / 3, (4 * T) / 3]) {
      await clock.advance(ms + T / 40);
      connectionsAt.push(server.connections.length);
    }
    expect(connectionsAt).toEqual([2, 3, 4]);
    const heardBefore = server.heard.length;
    await clock.advance(2 * T);
    expect(server.connections.length).toBe(4);
    expect(server.codes.slice(heardBefore).filter((code) => code === ping).length).toBeGreaterThanOrEqual(5);
    server.wake();
    await clock.advance(0);
    expect(writing.of).toBe(4);
    expect(zk.session.state).toBe("connected");
  });

  test("is reported after three connections in a row, and each time that they have doubled", async () => {
    const sentences: string[] = [];
    const { clock, zk } = await slowDisk({ onSlow: (sentence) => sentences.push(sentence) });
    void write(zk);
    await clock.advance(T / 3 + (2 * T) / 3 + T / 10);
    expect(sentences).toEqual([]);
    await clock.advance((4 * T) / 3 + T / 10);
    expect(sentences).toEqual([expect.stringContaining("has not answered a request within 8 s, 3 times in a row")]);
    await clock.advance(8 * T);
    expect(sentences.length).toBe(1);
    await clock.advance(60 * T);
    expect(sentences.length).toBe(2);
  });

  test("gets no more time for a lease: heartbeats are as strict as before", async () => {
    const { clock, ensemble, zk } = await slowDisk();
    const writing = outcome(write(zk));
    await clock.advance(3 * T);
    const server = ensemble.server(1);
    server.wake();
    await clock.advance(0);
    expect(writing.of).toBeGreaterThan(2);
    server.isSlow = () => true;
    zk.session.guard();
    const before = server.connections.length;
    await clock.advance(T / 12 + T / 3 + T / 40);
    expect(server.connections.length).toBeGreaterThan(before);
  });
});
