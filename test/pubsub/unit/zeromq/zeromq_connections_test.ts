import { describe, expect, test } from "bun:test";
import { DealerSocket } from "../../../../src/protocols/zeromq/dealer_socket.ts";
import { RouterSocket } from "../../../../src/protocols/zeromq/router_socket.ts";
import type { Dial } from "../../../../src/base/sockets/connection.ts";
import { command, frame, greeting, join, ready, text } from "../../../support/zmtp_bytes.ts";
import { rawPeer } from "./raw_peer.ts";
import { bytes, outcome, SocketRig, words } from "./socket_rig.ts";

const joined = async (heartbeat = { everyMs: 5000, timeoutMs: 15_000 }) => {
  const rig = new SocketRig();
  const router = new RouterSocket({ ...rig.options, heartbeat: { everyMs: 0, timeoutMs: 0 }, receiveHighWater: 2 });
  const dealer = new DealerSocket({ ...rig.options, heartbeat });
  await rig.join(router, dealer);
  const { writes } = rig.network.last;
  const pings = () => writes.filter((chunk) => new TextDecoder().decode(chunk).includes("\x04PING")).length;
  return { rig, router, dealer, pings };
};

describe("heartbeats", () => {
  test("keep a silent connection, one PING every interval", async () => {
    const { rig, pings } = await joined();
    await rig.clock.advance(60_000);
    expect(pings()).toBe(12);
    expect(rig.kinds()).toEqual(["connected", "connected"]);
  });

  test("end a connection that is half open, and a new one is made", async () => {
    const { rig, router, dealer } = await joined();
    rig.network.last.isSilent = true;
    rig.network.last.other.isSilent = true;
    await rig.clock.advance(14_999);
    expect(rig.kinds()).toEqual(["connected", "connected"]);
    await rig.clock.advance(1);
    await rig.settle();
    expect(rig.events[2]).toMatchObject({
      kind: "disconnected",
      reason: { reason: "SILENT", code: "CONNECTION_LOST", message: "Nothing was heard of the peer for 15000 ms" },
    });
    await rig.clock.advance(100);
    await rig.settle();
    await dealer.send([bytes("again")]);
    await rig.settle();
    expect(words(router.receiveReady()[0] ?? [])[1]).toBe("again");
    expect(dealer.counters.reconnects).toBe(1);
  });

  test("the side that sends none ends the connection after the other's time to live", async () => {
    const { rig, router } = await joined();
    await rig.clock.advance(5000); // one PING has come, with 15 s
    rig.network.last.isSilent = true;
    rig.network.last.other.isSilent = true;
    await rig.clock.advance(14_999);
    expect(router.identities.length).toBe(1);
    await rig.clock.advance(1);
    await rig.settle();
    expect(router.identities.length).toBe(0);
  });

  test("do not end a connection because this process stood still", async () => {
    const { rig } = await joined();
    await rig.clock.advance(4000);
    await rig.clock.jump(60_000);
    await rig.clock.advance(10_000);
    await rig.settle();
    expect(rig.kinds()).toEqual(["connected", "connected"]);
  });

  test("do not end a connection that this side does not read from", async () => {
    const rig = new SocketRig();
    const heartbeat = { everyMs: 5000, timeoutMs: 15_000 };
    const router = new RouterSocket({ ...rig.options, heartbeat, receiveHighWater: 2 });
    const dealer = new DealerSocket({ ...rig.options, heartbeat });
    await rig.join(router, dealer);
    for (let number = 0; number < 10; number++) dealer.trySend([bytes(String(number))]);
    await rig.clock.advance(120_000);
    expect(rig.kinds()).toEqual(["connected", "connected"]);
    let got = 0;
    for (let batch = 1; batch > 0; got += batch) {
      await rig.settle();
      batch = router.receiveReady().length;
    }
    expect(got).toBe(10);
  });

  test("go to a ZMTP 3.0 peer only when it has sent one", async () => {
    const rig = new SocketRig();
    const router = new RouterSocket(rig.options);
    const { end, heard } = await rawPeer(rig, router);
    end.write(join([greeting({ minor: 0 }), ready("DEALER")]));
    await rig.clock.advance(60_000);
    expect(heard()).not.toContain("PING");
    expect(router.identities.length).toBe(1);
    end.write(command("PING", text("\x00\x14")));
    await rig.settle();
    expect(heard()).toContain("PONG");
    await rig.clock.advance(1999);
    expect(heard()).toContain("PING");
    expect(router.identities.length).toBe(1);
    await rig.clock.advance(1);
    await rig.settle();
    expect(router.identities.length).toBe(0);
  });

  test("a peer that sends PINGs and never reads gets no more answers than what little it may hold", async () => {
    const rig = new SocketRig();
    const router = new RouterSocket(rig.options);
    const { end } = await rawPeer(rig, router);
    end.write(join([greeting(), ready("DEALER")]));
    await rig.settle();
    end.pause();
    const pings = join(Array.from({ length: 1000 }, () => command("PING", text("\0\x100123456789abcdef"))));
    for (let round = 0; round < 100; round++) {
      end.write(pings);
      await rig.settle();
    }
    expect(end.other.bufferedBytes).toBeLessThan(600_000);
  });
});

describe("the handshake", () => {
  test("that is not over in time ends the connection, whatever trickles in", async () => {
    const rig = new SocketRig();
    const { end, isClosed } = await rawPeer(rig, new RouterSocket({ ...rig.options, handshakeMsMax: 3000 }));
    const bytes = greeting();
    for (let at = 0; at < 29; at++) {
      end.write(bytes.slice(at, at + 1));
      await rig.clock.advance(100);
    }
    expect(isClosed()).toBe(false);
    await rig.clock.advance(100);
    await rig.settle();
    expect(isClosed()).toBe(true);
    expect(rig.events[0]).toMatchObject({
      kind: "handshakeFailed",
      reason: { message: "The peer did not complete the handshake within 3000 ms" },
    });
  });

  test("that is not over because this process stood still goes on with what has come meanwhile", async () => {
    const rig = new SocketRig();
    const router = new RouterSocket(rig.options);
    const { end } = await rawPeer(rig, router);
    end.write(join([greeting(), ready("DEALER"), frame(0, text("early"))]));
    rig.clock.stall(60_000);
    rig.clock.runDue();
    await rig.settle();
    await rig.clock.advance(1000);
    expect(router.receiveReady().length).toBe(1);
    expect(rig.kinds()).toEqual(["connected"]);
  });

  test("with whatever is no ZMTP ends at once, with its reason, and is counted", async () => {
    const rig = new SocketRig();
    const router = new RouterSocket(rig.options);
    const { end, isClosed } = await rawPeer(rig, router);
    end.write(text("GET / HTTP/1.1\r\n\r\n"));
    await rig.settle();
    expect(isClosed()).toBe(true);
    expect(router.counters.handshakesFailed).toBe(1);
    expect(rig.events[0]).toMatchObject({ reason: { code: "ZMTP_PROTOCOL", reason: "GREETING" } });
  });

  test("that fails for a lasting reason is tried again, after waits that grow, and told each time", async () => {
    const rig = new SocketRig();
    rig.random = 1;
    const left = new RouterSocket(rig.options);
    const right = new RouterSocket(rig.options);
    Object.assign(right, { type: "REP" }); // which a ROUTER does not talk to
    await rig.join(left, right);
    await rig.clock.advance(100 + 200 + 400 + 800 - 1);
    await rig.settle();
    expect(rig.network.attempts.length).toBe(4);
    await rig.clock.advance(1);
    await rig.settle();
    expect(rig.network.attempts.length).toBe(5);
    const failures = rig.events.filter((event) => event.kind === "handshakeFailed");
    expect(failures.length).toBe(10);
    expect(right.counters.handshakesFailed).toBe(5);
  });

  test("gives a message that came with its last bytes to the program", async () => {
    const rig = new SocketRig();
    const router = new RouterSocket(rig.options);
    const { end } = await rawPeer(rig, router);
    end.write(join([greeting(), ready("DEALER", text("d")), frame(0, text("early"))]));
    await rig.settle();
    expect(router.receiveReady().map(words)).toEqual([["d", "early"]]);
  });
});

test("what breaks the protocol later ends that connection alone; what came before counts", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket(rig.options);
  const { end, isClosed } = await rawPeer(rig, router);
  const dealer = new DealerSocket(rig.options);
  await rig.join(router, dealer);
  end.write(join([greeting(), ready("DEALER", text("d")), frame(0, text("good")), frame(8, text("bad"))]));
  await rig.settle();
  expect(isClosed()).toBe(true);
  expect(router.receiveReady().map(words)).toEqual([["d", "good"]]);
  expect(router.identities.length).toBe(1);
  expect(rig.events.at(-1)).toMatchObject({ kind: "disconnected", reason: { reason: "FRAME" } });
});

describe("reconnecting", () => {
  test("waits a random part of a bound that doubles up to its limit", async () => {
    const rig = new SocketRig();
    rig.random = 0.5;
    const dealer = new DealerSocket({ ...rig.options, reconnect: { minMs: 100, maxMs: 1000 } });
    dealer.connect("tcp://127.0.0.1:1");
    await rig.clock.advance(0);
    for (let round = 0; round < 7; round++) await rig.clock.advance(1000);
    const waits = rig.events.map((event) => event.kind === "connectFailed" ? event.retryMs : null);
    expect(waits.slice(0, 6)).toEqual([50, 100, 200, 400, 500, 500]);
    expect(rig.events[0]).toMatchObject({ endpoint: "tcp://127.0.0.1:1", reason: { message: "connection refused" } });
  });

  test("begins anew after a connection that lasted; an attempt that hangs ends", async () => {
    const { rig, dealer } = await joined();
    await rig.clock.advance(5000);
    for (let round = 0; round < 5; round++) {
      rig.network.last.close(null);
      await rig.settle();
      await rig.clock.advance(50);
      await rig.settle();
      await rig.clock.advance(2000);
    }
    expect(dealer.counters.reconnects).toBe(5);
    rig.network.isHanging = true;
    rig.network.last.close(null);
    await rig.settle();
    await rig.clock.advance(50);
    await rig.clock.advance(10_000);
    expect(rig.events.at(-1)).toMatchObject({
      kind: "connectFailed",
      reason: { message: "no connection within 10000 ms" },
    });
  });

  test("ends with the socket, and what waited is counted as dropped", async () => {
    const rig = new SocketRig();
    const dealer = new DealerSocket(rig.options);
    dealer.connect("tcp://127.0.0.1:1");
    await dealer.send([bytes("x")]);
    await rig.settle();
    expect(() => dealer.connect("tcp://127.0.0.1:1")).toThrow("it is connected");
    await dealer.close({ lingerMs: 0 });
    const { length } = rig.network.attempts;
    await rig.clock.advance(60_000);
    expect(rig.network.attempts.length).toBe(length);
    expect(dealer.counters.dropped).toBe(1);
  });
});

describe("closing", () => {
  test("lets what was sent leave, within the linger", async () => {
    const { rig, router, dealer } = await joined({ everyMs: 0, timeoutMs: 0 });
    rig.network.last.other.pause();
    dealer.trySend([new Uint8Array(5000)]);
    await rig.settle();
    const closing = outcome(dealer.close({ lingerMs: 1000 }));
    await rig.clock.advance(500);
    expect(closing.of).toBe("pending");
    rig.network.last.other.resume();
    await rig.settle();
    expect(closing.of).toBe("done");
    expect(router.receiveReady().length).toBe(1);
    expect(rig.clock.timers).toBe(0);
  });

  test("takes no longer than the linger and a goodbye, and counts what is lost", async () => {
    const { rig, dealer } = await joined({ everyMs: 0, timeoutMs: 0 });
    rig.network.last.other.pause();
    dealer.trySend([new Uint8Array(5000)]);
    await rig.settle();
    const closing = outcome(dealer.close({ lingerMs: 1000 }));
    await rig.clock.advance(1999);
    await rig.settle();
    expect(closing.of).toBe("pending");
    await rig.clock.advance(1);
    await rig.settle();
    expect(closing.of).toBe("done");
    expect(dealer.counters.dropped).toBe(1);
  });

  test("leaves nothing behind of a connection that was over before anybody had it", async () => {
    const rig = new SocketRig();
    let writes = 0;
    const connection = {
      peer: "tcp://127.0.0.1:1",
      bufferedBytes: 0,
      write: () => void writes++,
      pause() {},
      resume() {},
      end() {},
      destroy() {},
    };
    // As Bun's, when the peer resets a connection at once.
    const dial: Dial = (_address, handlers) => {
      queueMicrotask(() => handlers.onClosed(null));
      return Promise.resolve(connection);
    };
    const dealer = new DealerSocket({ ...rig.options, dial });
    dealer.connect("tcp://127.0.0.1:1");
    await rig.settle();
    expect([rig.kinds(), writes]).toEqual([["handshakeFailed"], 0]);
    await dealer.close({ lingerMs: 0 });
    expect(rig.clock.timers).toBe(0);
  });

  test("at once, and while an attempt to connect hangs, leaves nothing behind", async () => {
    const rig = new SocketRig();
    const dealer = new DealerSocket(rig.options);
    rig.network.isHanging = true;
    dealer.connect("tcp://127.0.0.1:1");
    await dealer.send([bytes("x")]);
    const receiving = outcome(dealer.receive());
    await dealer.close({ lingerMs: 0 });
    await rig.settle();
    expect(receiving.of).toBe("ZMTP_STATE");
    expect(rig.clock.timers).toBe(0);
    expect(dealer.counters.dropped).toBe(1);
    await dealer.close();
    await expect(dealer.bind("tcp://127.0.0.1:0")).rejects.toMatchObject({ code: "ZMTP_STATE" });
  });

  test("a socket waits for a connection as long as it lingers", async () => {
    const rig = new SocketRig();
    const router = new RouterSocket(rig.options);
    const dealer = new DealerSocket(rig.options);
    const endpoint = "tcp://127.0.0.1:7";
    dealer.connect(endpoint);
    await dealer.send([bytes("late")]);
    const closing = outcome(dealer.close({ lingerMs: 10_000 }));
    await rig.clock.advance(1000);
    await router.bind(endpoint);
    await rig.clock.advance(550); // the sixth attempt
    await rig.settle();
    expect(router.receiveReady().length).toBe(1);
    expect(closing.of).toBe("done");
  });
});

test("options that cannot be meant are refused", () => {
  const refused = (options: ConstructorParameters<typeof DealerSocket>[0]) => () => new DealerSocket(options);
  expect(refused({ identity: "x".repeat(256) })).toThrow("at most 255 bytes; this one has 256");
  expect(refused({ identity: "\0x" })).toThrow("cannot begin with a zero byte");
  expect(refused({ sendHighWater: 0 })).toThrow("Cannot use 0 as sendHighWater");
  // Every comparison with NaN is false: as a limit it would be none.
  expect(refused({ connectionsMax: NaN })).toThrow("Cannot use NaN as connectionsMax: it must be 1 or more");
  expect(refused({ limits: { messageBytesMax: NaN } })).toThrow("Cannot use NaN as limits.messageBytesMax");
  expect(refused({ limits: { framesMax: 0 } })).toThrow("Cannot use 0 as limits.framesMax");
  expect(refused({ limits: { commandBytesMax: -1 } })).toThrow("Cannot use -1 as limits.commandBytesMax");
  expect(refused({ handshakeMsMax: NaN })).toThrow("Cannot use NaN as handshakeMsMax");
  expect(refused({ heartbeat: { everyMs: NaN, timeoutMs: 0 } })).toThrow("Cannot use NaN as heartbeat.everyMs");
  expect(refused({ heartbeat: { everyMs: 0, timeoutMs: -1 } })).toThrow(
    "Cannot use -1 as heartbeat.timeoutMs: it must be 0 or more",
  );
  expect(refused({ reconnect: { minMs: 0, maxMs: 1 } })).toThrow("Cannot use 0 as reconnect.minMs");
  expect(refused({ reconnect: { minMs: 10, maxMs: 9 } })).toThrow(
    "Cannot use 9 as reconnect.maxMs: it must be 10 or more, as reconnect.minMs",
  );
});
