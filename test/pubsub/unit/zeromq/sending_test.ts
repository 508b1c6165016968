import { expect, test } from "bun:test";
import { DealerSocket } from "../../../../src/protocols/zeromq/dealer_socket.ts";
import { RouterSocket } from "../../../../src/protocols/zeromq/router_socket.ts";
import { zmtpFrameOverheadBytes } from "../../../../src/protocols/zeromq/zmtp/zmtp_limits.ts";
import { bytes, outcome, SocketRig, words } from "./socket_rig.ts";
import { messagesOf } from "../../../support/messages_of.ts";

test("the messages of one turn leave in one write, those of a loop that awaits too", async () => {
  const rig = new SocketRig();
  const left = new DealerSocket(rig.options);
  const right = new DealerSocket(rig.options);
  await rig.join(left, right);
  const { writes } = rig.network.last;
  const before = writes.length;
  for (let number = 0; number < 50; number++) right.trySend([bytes(`a${number}`)]);
  await rig.settle();
  expect(writes.length - before).toBe(1);
  for (let number = 0; number < 50; number++) await right.send([bytes(`b${number}`)]);
  await rig.settle();
  expect(writes.length - before).toBe(2);
  const messages = left.receiveReady();
  expect(messages.map((frames) => words(frames)[0])).toEqual(
    ["a", "b"].flatMap((round) => Array.from({ length: 50 }, (_, number) => `${round}${number}`)),
  );
});

test("the answers to the messages of a batch leave together, once it is seen that there are several", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket(rig.options);
  const dealer = new DealerSocket(rig.options);
  await rig.join(router, dealer);
  const echo = (async () => {
    for await (const message of messagesOf(router)) await router.send(message);
  })();
  const { writes } = rig.network.last.other;
  for (const writesMax of [2, 1, 1]) {
    const { length } = writes;
    for (let number = 0; number < 20; number++) dealer.trySend([bytes(String(number))]);
    await rig.settle();
    expect(dealer.receiveReady().length).toBe(20);
    expect(writes.length - length).toBeLessThanOrEqual(writesMax);
  }
  const closing = router.close({ lingerMs: 0 });
  await echo;
  await closing;
});

test("a large frame is written as it is", async () => {
  const rig = new SocketRig();
  const left = new DealerSocket(rig.options);
  const right = new DealerSocket(rig.options);
  await rig.join(left, right);
  const large = new Uint8Array(100_000).fill(1);
  await right.send([bytes("head"), large]);
  await rig.settle();
  expect(rig.network.last.writes.at(-1)?.byteLength).toBe(100_000);
  expect((await left.receive())[1]).toEqual(large);
});

test("DEALER sends to each peer in turn, and leaves out one that is full", async () => {
  const rig = new SocketRig();
  const dealer = new DealerSocket({ ...rig.options, sendHighWater: 2 });
  const routers = [new RouterSocket(rig.options), new RouterSocket(rig.options), new RouterSocket(rig.options)];
  for (const router of routers) dealer.connect(await router.bind("tcp://127.0.0.1:0"));
  await rig.settle();
  for (let number = 0; number < 6; number++) await dealer.send([bytes(String(number))]);
  await rig.settle();
  const got = routers.map((router) => router.receiveReady().map((frames) => words(frames)[1]));
  expect(got.map((all) => all.length)).toEqual([2, 2, 2]);
  expect(got.flat().sort()).toEqual(["0", "1", "2", "3", "4", "5"]);
  rig.network.dialed[1]?.other.pause();
  const large = new Uint8Array(2000);
  for (let number = 0; number < 20; number++) {
    expect(dealer.trySend([large])).toBe(true);
    await rig.settle();
  }
  expect(routers[0]?.receiveReady().length).toBe(9);
  expect(routers[1]?.receiveReady().length).toBe(0);
  expect(routers[2]?.receiveReady().length).toBe(9);
});

test("messages wait for an endpoint that nobody serves yet, up to the high-water mark", async () => {
  const rig = new SocketRig();
  const dealer = new DealerSocket({ ...rig.options, sendHighWater: 3 });
  expect(dealer.trySend([bytes("nobody")])).toBe(false);
  const router = new RouterSocket(rig.options);
  const endpoint = "tcp://127.0.0.1:7";
  dealer.connect(endpoint);
  const sent = [1, 2, 3, 4].map((number) => dealer.trySend([bytes(String(number))]));
  expect(sent).toEqual([true, true, true, false]);
  const waiting = outcome(dealer.send([bytes("4")]));
  await router.bind(endpoint);
  await rig.clock.advance(1000);
  await rig.settle();
  expect(waiting.of).toBe("done");
  expect(router.receiveReady().map((frames) => words(frames)[1])).toEqual(["1", "2", "3", "4"]);
});

test("a connected peer is preferred to one that is down", async () => {
  const rig = new SocketRig();
  const dealer = new DealerSocket(rig.options);
  const router = new RouterSocket(rig.options);
  dealer.connect("tcp://127.0.0.1:1");
  await rig.join(router, dealer);
  for (let number = 0; number < 10; number++) await dealer.send([bytes("x")]);
  await rig.settle();
  expect(router.receiveReady().length).toBe(10);
});

test("a peer that never reads takes what the marks allow, and no more", async () => {
  const rig = new SocketRig();
  const dealer = new DealerSocket({ ...rig.options, sendHighWater: 100, sendHighWaterBytes: 50_000 });
  const router = new RouterSocket(rig.options);
  await rig.join(router, dealer);
  rig.network.last.other.pause();
  let taken = 0;
  while (dealer.trySend([new Uint8Array(2000)])) {
    taken++;
    await rig.settle();
  }
  expect(taken).toBeLessThanOrEqual(26);
  let small = 0;
  const other = new DealerSocket({ ...rig.options, sendHighWater: 100 });
  await rig.join(router, other);
  rig.network.last.other.pause();
  while (other.trySend([new Uint8Array(20)])) {
    small++;
    await rig.settle();
  }
  expect(small).toBeGreaterThanOrEqual(100);
  expect(small).toBeLessThanOrEqual(160); // what the network took, and 100
  const waiting = outcome(other.send([bytes("late")]));
  await rig.settle();
  expect(waiting.of).toBe("pending");
  rig.network.last.other.resume();
  await rig.settle();
  expect(waiting.of).toBe("done");
  expect(words(router.receiveReady(Infinity).at(-1) ?? [])[1]).toBe("late");
});

test("the mark for sending counts what frames cost besides their bytes", () => {
  const rig = new SocketRig();
  const dealer = new DealerSocket({ ...rig.options, sendHighWaterBytes: 1_000_000 });
  dealer.connect("tcp://127.0.0.1:1");
  const empty = Array.from({ length: 1000 }, () => new Uint8Array(0));
  let taken = 0;
  while (dealer.trySend(empty)) taken++;
  expect(taken).toBe(Math.ceil(1_000_000 / (1000 * zmtpFrameOverheadBytes)));
});

test("those who wait to send are served in their order, and one who gives up is not", async () => {
  const rig = new SocketRig();
  const dealer = new DealerSocket({ ...rig.options, sendHighWater: 1 });
  const router = new RouterSocket(rig.options);
  const giveUp = new AbortController();
  const sends = ["1", "2", "3", "4"].map((text) =>
    outcome(dealer.send([bytes(text)], text === "3" ? { signal: giveUp.signal } : {}))
  );
  giveUp.abort("given up");
  await rig.join(router, dealer);
  await rig.settle();
  expect(sends.map(({ of }) => of)).toEqual(["done", "done", "given up", "done"]);
  expect(router.receiveReady().map((frames) => words(frames)[1])).toEqual(["1", "2", "4"]);
});

test("a message over the limits is refused before anybody has it", async () => {
  const rig = new SocketRig();
  const dealer = new DealerSocket({ ...rig.options, limits: { messageBytesMax: 100, framesMax: 2 } });
  dealer.connect("tcp://127.0.0.1:1");
  const three = [bytes(""), bytes(""), bytes("")];
  for (const frames of [[], [new Uint8Array(101)], three]) {
    expect(() => dealer.trySend(frames)).toThrow(expect.objectContaining({ code: "BAD_DATA" }));
    await expect(dealer.send(frames)).rejects.toMatchObject({ code: "BAD_DATA" });
  }
  expect(dealer.trySend([new Uint8Array(100)])).toBe(true);
});
