/** What peers have sent and nobody has taken: it is limited, also when the peers go and come again. */
import { expect, test } from "bun:test";
import { DealerSocket } from "../../../../src/protocols/zeromq/dealer_socket.ts";
import { RouterSocket } from "../../../../src/protocols/zeromq/router_socket.ts";
import { frame, greeting, join, ready, text } from "../../../support/zmtp_bytes.ts";
import type { FakeEnd } from "./fake_network.ts";
import { bytes, SocketRig, words } from "./socket_rig.ts";

const addressOf = (endpoint: string) => ({
  kind: "tcp" as const,
  host: "127.0.0.1",
  port: Number(/\d+$/.exec(endpoint)?.[0]),
});

/** Connects, says hello and all of these messages, and is gone. */
async function hitAndRun(rig: SocketRig, endpoint: string, { identity = "", texts = ["x"] } = {}): Promise<FakeEnd> {
  await rig.network.dial(addressOf(endpoint), { onData() {}, onClosed() {} });
  const end = rig.network.last;
  end.write(join([greeting(), ready("DEALER", text(identity)), ...texts.map((body) => frame(0, text(body)))]));
  await rig.settle();
  end.close(null);
  await rig.settle();
  return end;
}

test("peers that go and leave messages unread keep their places, up to the limit of connections", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket({ ...rig.options, connectionsMax: 3 });
  const endpoint = await router.bind("tcp://127.0.0.1:0");
  for (let round = 0; round < 10; round++) await hitAndRun(rig, endpoint, { texts: ["1", "2"] });
  expect(router.counters.connectionsRefused).toBe(7);
  expect(router.receiveReady(4).length).toBe(4);
  await hitAndRun(rig, endpoint);
  // One message each was taken of the first three, then the first's second: one place is free.
  expect(router.counters.connectionsRefused).toBe(7);
  await hitAndRun(rig, endpoint);
  expect(router.counters.connectionsRefused).toBe(8);
  expect(router.receiveReady().length).toBe(3);
  for (let round = 0; round < 3; round++) await hitAndRun(rig, endpoint);
  expect(router.counters.connectionsRefused).toBe(8);
});

test("a peer that comes again and again under its name leaves no more unread than one that stays", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket({ ...rig.options, receiveHighWater: 5, connectionsMax: 2 });
  const endpoint = await router.bind("tcp://127.0.0.1:0");
  for (let round = 0; round < 20; round++) {
    await hitAndRun(rig, endpoint, { identity: "d", texts: [0, 1, 2, 3].map((number) => `${round}.${number}`) });
  }
  const got = router.receiveReady().map(words);
  expect(got.length).toBe(5);
  expect(got.map(([, body]) => body)).toEqual(["0.0", "0.1", "0.2", "0.3", "1.0"]);
  expect(router.counters.connectionsRefused).toBe(0);
});

test("a peer that comes again at the mark is read from when there is room, without a loss", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket({ ...rig.options, receiveHighWater: 4 });
  const dealer = new DealerSocket({ ...rig.options, identity: "d" });
  await rig.join(router, dealer);
  for (const number of [1, 2, 3, 4]) dealer.trySend([bytes(String(number))]);
  await rig.settle();
  rig.network.last.close(null);
  await rig.settle();
  for (const number of [5, 6, 7]) dealer.trySend([bytes(String(number))]);
  await rig.clock.advance(100);
  await rig.settle();
  expect(dealer.counters.reconnects).toBe(1);
  expect(rig.network.last.other.isPaused).toBe(true);
  const got: (string | undefined)[] = [];
  let batch = router.receiveReady();
  expect(batch.length).toBe(4);
  for (; batch.length > 0; batch = router.receiveReady()) {
    got.push(...batch.map((frames) => words(frames)[1]));
    await rig.settle();
  }
  expect(got).toEqual(["1", "2", "3", "4", "5", "6", "7"]);
});

test("a heap of small messages costs no more each the longer the chunk is that they came in", async () => {
  const timeMs = async (count: number): Promise<number> => {
    const rig = new SocketRig();
    const router = new RouterSocket({ ...rig.options, receiveHighWater: 1 });
    await rig.network.dial(addressOf(await router.bind("tcp://127.0.0.1:0")), { onData() {}, onClosed() {} });
    rig.network.last.write(join([greeting(), ready("DEALER"), new Uint8Array(2 * count)])); // empty frames
    const startMs = performance.now();
    for (let got = 0; got < count; got++) await router.receive();
    const tookMs = performance.now() - startMs;
    await router.close({ lingerMs: 0 });
    return tookMs;
  };
  await timeMs(2000);
  const small = Math.min(await timeMs(2000), await timeMs(2000), await timeMs(2000));
  const large = Math.min(await timeMs(128_000), await timeMs(128_000));
  // 64 times as many: a cost that grows with the square would be 4096 times as high; a busy machine adds some of the
  // rest.
  expect(large / small).toBeLessThan(1000);
}, 30_000);

test.each([1, 10, 1000])(
  "a heap of small messages does not keep the program from everybody else (mark %i)",
  async (mark) => {
    const rig = new SocketRig();
    const router = new RouterSocket({ ...rig.options, receiveHighWater: mark });
    await rig.network.dial(addressOf(await router.bind("tcp://127.0.0.1:0")), { onData() {}, onClosed() {} });
    const count = 50_000;
    rig.network.last.write(join([greeting(), ready("DEALER"), new Uint8Array(2 * count)])); // empty frames
    let got = 0;
    let turns = 0;
    let isOver = false;
    const turn = () => {
      turns++;
      if (!isOver) setImmediate(turn);
    };
    for await (const batch of router.batches()) {
      if (got === 0) turn();
      got += batch.length;
      if (got === count) break;
    }
    isOver = true;
    expect(turns).toBeGreaterThan(count / 2000);
    await router.close({ lingerMs: 0 });
  },
);

test("the endpoint of a connect that breaks again and again leaves no more unread than one that stays", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket(rig.options);
  const dealer = new DealerSocket({ ...rig.options, receiveHighWater: 3 });
  await rig.join(router, dealer);
  for (let round = 0; round < 6; round++) {
    for (const identity of router.identities) for (let n = 0; n < 3; n++) router.trySend([identity, bytes("x")]);
    await rig.settle();
    rig.network.last.close(null);
    await rig.settle();
    await rig.clock.advance(5000);
    await rig.settle();
  }
  expect(dealer.receiveReady().length).toBe(3);
});
