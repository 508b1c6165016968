import { describe, expect, test } from "bun:test";
import { DealerSocket } from "../../../../src/protocols/zeromq/dealer_socket.ts";
import { RouterSocket } from "../../../../src/protocols/zeromq/router_socket.ts";
import type { ZeroMqSocketOptions } from "../../../../src/protocols/zeromq/socket_options.ts";
import { encodeZ85 } from "../../../../src/base/wire/z85.ts";
import { curveServing, curveUser, seededKey } from "../../../support/curve_rig.ts";
import { greeting, ready } from "../../../support/zmtp_bytes.ts";
import { bytes, outcome, SocketRig, words } from "./socket_rig.ts";

test("a message for a peer that is not connected is dropped and counted", async () => {
  const rig = new SocketRig();
  const loose = new RouterSocket(rig.options);
  expect(loose.trySend([bytes("nobody"), bytes("x")])).toBe(true);
  await loose.send([bytes("nobody"), bytes("x")]);
  expect(loose.counters.unroutable).toBe(2);
  expect(() => loose.trySend([bytes("identity alone")])).toThrow("the first frame is the peer's identity");
});

test("peers without an identity get one each of five bytes, the first zero", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket(rig.options);
  const dealers = [new DealerSocket(rig.options), new DealerSocket(rig.options)];
  await rig.join(router, ...dealers);
  const { identities } = router;
  expect(identities.map((identity) => [identity.byteLength, identity[0]])).toEqual([[5, 0], [5, 0]]);
  expect(new Set(identities.map((identity) => identity.toHex())).size).toBe(2);
  for (const identity of identities) await router.send([identity.slice(), bytes(identity.toHex())]);
  await rig.settle();
  const got = dealers.flatMap((dealer) => dealer.receiveReady().map((frames) => words(frames)[0]));
  expect(got).toEqual(identities.map((identity) => identity.toHex()));
});

test("what waits for a slow peer does not hold up another", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket({ ...rig.options, sendHighWater: 2 });
  const [slow, quick] = ["slow", "quick"].map((identity) => new DealerSocket({ ...rig.options, identity }));
  await rig.join(router, slow as DealerSocket, quick as DealerSocket);
  rig.network.dialed[0]?.pause();
  const large = new Uint8Array(5000);
  while (router.trySend([bytes("slow"), large])) await rig.settle();
  const waiting = outcome(router.send([bytes("slow"), bytes("late")]));
  expect(router.trySend([bytes("quick"), bytes("now")])).toBe(true);
  await rig.settle();
  expect((quick as DealerSocket).receiveReady().length).toBe(1);
  expect(waiting.of).toBe("pending");
  rig.network.dialed[0]?.resume();
  await rig.settle();
  expect(waiting.of).toBe("done");
});

test("a send that waits for a peer which goes away is counted as unroutable, once", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket({ ...rig.options, sendHighWater: 1 });
  const dealer = new DealerSocket({ ...rig.options, identity: "d" });
  await rig.join(router, dealer);
  rig.network.last.pause();
  while (router.trySend([bytes("d"), new Uint8Array(5000)])) await rig.settle();
  const waiting = outcome(router.send([bytes("d"), bytes("late")]));
  rig.network.last.close(null);
  await rig.settle();
  expect(waiting.of).toBe("done");
  expect(router.counters.unroutable).toBe(1);
  expect(router.counters.dropped).toBeGreaterThan(0);
});

test("a send that waits for a peer goes to the one that takes its identity over", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket({ ...rig.options, sendHighWater: 1 });
  const [old, next] = [1, 2].map(() => new DealerSocket({ ...rig.options, identity: "d" }));
  await rig.join(router, old as DealerSocket);
  rig.network.last.pause();
  while (router.trySend([bytes("d"), new Uint8Array(5000)])) await rig.settle();
  const sends = ["1", "2"].map((text) => outcome(router.send([bytes("d"), bytes(text)])));
  await rig.join(router, next as DealerSocket);
  await rig.settle();
  expect(sends.map(({ of }) => of)).toEqual(["done", "done"]);
  expect((next as DealerSocket).receiveReady().map(words)).toEqual([["1"], ["2"]]);
  expect(router.counters.unroutable).toBe(0);
});

test("the peer of a connect keeps its identity while it is down, and messages wait for it", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket(rig.options);
  const dealer = new DealerSocket(rig.options);
  await rig.join(dealer, router);
  const [identity] = router.identities;
  rig.network.last.close(null);
  await rig.settle();
  expect(router.trySend([identity as Uint8Array, bytes("meanwhile")])).toBe(true);
  await rig.clock.advance(100);
  await rig.settle();
  expect(dealer.receiveReady().map(words)).toEqual([["meanwhile"]]);
  expect(router.identities).toEqual([identity as Uint8Array]);
  expect(router.counters.unroutable).toBe(0);
});

describe("an identity that comes twice", () => {
  const twice = async (options: ZeroMqSocketOptions, optionsOf: (user: number) => ZeroMqSocketOptions) => {
    const rig = new SocketRig();
    const router = new RouterSocket({ ...rig.options, ...options });
    const dealers = [11, 12].map((user) => new DealerSocket({ ...rig.options, ...optionsOf(user), identity: "same" }));
    await rig.join(router, ...dealers);
    return { rig, router, old: dealers[0] as DealerSocket, next: dealers[1] as DealerSocket };
  };

  test("passes to the newcomer, and the old connection ends", async () => {
    const { rig, router, old, next } = await twice({}, () => ({}));
    expect(router.identities.map((identity) => words([identity])[0])).toEqual(["same"]);
    router.trySend([bytes("same"), bytes("to the newcomer")]);
    await rig.settle();
    expect(next.receiveReady().map(words)).toEqual([["to the newcomer"]]);
    expect(old.receiveReady()).toEqual([]);
    const ended = rig.events.find(({ kind }) => kind === "disconnected");
    expect(ended).toMatchObject({ reason: { reason: "REPLACED" } });
  });

  test("is refused to another user", async () => {
    const { rig, router, old } = await twice(curveServing(), curveUser);
    expect(router.peer(bytes("same"))?.userId).toBe(encodeZ85(seededKey(11).publicKey));
    router.trySend([bytes("same"), bytes("secret")]);
    await rig.settle();
    expect(old.receiveReady().map(words)).toEqual([["secret"]]);
    expect(rig.events.filter(({ kind }) => kind === "handshakeFailed")).not.toEqual([]);
  });
});

test("what came by an earlier connection of a peer is taken before what comes by the next", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket(rig.options);
  const dealer = new DealerSocket({ ...rig.options, identity: "d" });
  await rig.join(router, dealer);
  for (const text of ["1", "2", "3"]) dealer.trySend([bytes(text)]);
  await rig.settle();
  rig.network.last.close(null);
  await rig.settle();
  await rig.clock.advance(100);
  for (const text of ["4", "5", "6"]) dealer.trySend([bytes(text)]);
  await rig.settle();
  expect(dealer.counters.reconnects).toBe(1);
  expect(router.receiveReady().map((frames) => words(frames)[1])).toEqual(["1", "2", "3", "4", "5", "6"]);
});

test("an identity that begins with a zero byte is refused: it could be another peer's", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket(rig.options);
  const endpoint = await router.bind("tcp://127.0.0.1:0");
  const [, port = ""] = /:(\d+)$/.exec(endpoint) ?? [];
  const forger = await rig.network.dial({ kind: "tcp", host: "127.0.0.1", port: Number(port) }, {
    onData() {},
    onClosed() {},
  });
  forger.write(greeting());
  forger.write(ready("DEALER", new Uint8Array([0, 1, 2, 3, 4])));
  await rig.settle();
  expect(router.identities).toEqual([]);
  expect(rig.events).toMatchObject([{ kind: "handshakeFailed", reason: { reason: "PROPERTIES" } }]);
});
