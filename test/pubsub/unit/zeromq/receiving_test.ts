import { expect, test } from "bun:test";
import { DealerSocket } from "../../../../src/protocols/zeromq/dealer_socket.ts";
import { RouterSocket } from "../../../../src/protocols/zeromq/router_socket.ts";
import { zmtpFrameOverheadBytes } from "../../../../src/protocols/zeromq/zmtp/zmtp_limits.ts";
import { bytes, outcome, SocketRig, words } from "./socket_rig.ts";

test("at the high-water mark reading stops, at half of it reading goes on, and nothing is lost", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket({ ...rig.options, receiveHighWater: 10 });
  const dealer = new DealerSocket(rig.options);
  await rig.join(router, dealer);
  const far = rig.network.last.other;
  for (let number = 0; number < 35; number++) dealer.trySend([bytes(String(number))]);
  await rig.settle();
  expect(far.isPaused).toBe(true);
  const got: (string | undefined)[] = [];
  const take = async (count: number) => {
    const batch = router.receiveReady(count);
    got.push(...batch.map((frames) => words(frames)[1]));
    await rig.settle();
    return batch.length;
  };
  expect(await take(4)).toBe(4);
  expect(await take(Infinity)).toBe(6); // one short of half: nothing more was read
  while (await take(Infinity) > 0);
  expect(got).toEqual(Array.from({ length: 35 }, (_, number) => String(number)));
  expect(far.isPaused).toBe(false);
});

test("the mark counts bytes as well", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket({ ...rig.options, receiveHighWaterBytes: 1000 });
  const dealer = new DealerSocket(rig.options);
  await rig.join(router, dealer);
  for (let number = 0; number < 10; number++) dealer.trySend([new Uint8Array(400)]);
  await rig.settle();
  // 400 bytes each, and the cost of two frames.
  expect(router.receiveReady().length).toBe(2);
  await rig.settle();
  expect(router.receiveReady().length).toBe(2);
});

test("a heap of small frames in one chunk is not taken beyond the mark", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket({ ...rig.options, receiveHighWater: 100 });
  const dealer = new DealerSocket({ ...rig.options, sendHighWater: 100_000 });
  await rig.join(router, dealer);
  for (let number = 0; number < 20_000; number++) dealer.trySend([new Uint8Array(0)]);
  await rig.settle();
  expect(router.receiveReady().length).toBe(100);
  let rest = 0;
  for (let batch = 1; batch > 0; rest += batch) {
    await rig.settle();
    batch = router.receiveReady().length;
  }
  expect(rest).toBe(19_900);
});

test("the mark counts what frames cost besides their bytes", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket({ ...rig.options, receiveHighWaterBytes: 1_000_000 });
  const dealer = new DealerSocket(rig.options);
  await rig.join(router, dealer);
  const empty = Array.from({ length: 1000 }, () => new Uint8Array(0));
  for (let number = 0; number < 100; number++) dealer.trySend(empty);
  await rig.settle();
  const { length } = router.receiveReady();
  // As many as fit, and one more.
  expect(length).toBe(Math.ceil(1_000_000 / (1001 * zmtpFrameOverheadBytes + 5)));
  let rest = 0;
  for (let batch = 1; batch > 0; rest += batch) {
    await rig.settle();
    batch = router.receiveReady().length;
  }
  expect(rest).toBe(100 - length);
});

test("messages are taken from each peer in turn", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket(rig.options);
  const a = new DealerSocket(rig.options);
  const b = new DealerSocket(rig.options);
  await rig.join(router, a, b);
  for (let number = 0; number < 5; number++) a.trySend([bytes(`a${number}`)]);
  await rig.settle();
  for (let number = 0; number < 3; number++) b.trySend([bytes(`b${number}`)]);
  await rig.settle();
  const got = router.receiveReady().map((frames) => words(frames)[1]);
  expect(got).toEqual(["a0", "b0", "a1", "b1", "a2", "b2", "a3", "a4"]);
});

test("who waits gets messages in the order of asking; one who gave up costs no message", async () => {
  const rig = new SocketRig();
  const left = new DealerSocket(rig.options);
  const right = new DealerSocket(rig.options);
  await rig.join(left, right);
  const giveUp = new AbortController();
  const first = outcome(left.receive().then(words));
  const second = outcome(left.receive({ signal: giveUp.signal }));
  const third = outcome(left.receive().then(words));
  giveUp.abort("given up");
  for (const text of ["1", "2", "3"]) right.trySend([bytes(text)]);
  await rig.settle();
  expect([first.of, second.of, third.of]).toEqual([["1"], "given up", ["2"]]);
  expect(left.receiveReady().map(words)).toEqual([["3"]]);
  await expect(left.receive({ signal: AbortSignal.abort("too late") })).rejects.toBe("too late");
});

test("batches give all that came, and end with the socket", async () => {
  const rig = new SocketRig();
  const left = new DealerSocket(rig.options);
  const right = new DealerSocket(rig.options);
  await rig.join(left, right);
  const got: string[] = [];
  const batches: number[] = [];
  const iteration = (async () => {
    while (got.length < 2) got.push(...words(await left.receive()));
    for await (const batch of left.batches()) batches.push(batch.length);
  })();
  for (let number = 0; number < 5; number++) right.trySend([bytes(String(number))]);
  await rig.settle();
  expect([got, batches]).toEqual([["0", "1"], [3]]);
  const closing = left.close();
  await iteration;
  await rig.clock.advance(2000);
  await closing;
  await expect(left.receive()).rejects.toMatchObject({ code: "ZMTP_STATE" });
  expect(() => left.trySend([bytes("x")])).toThrow("The DEALER socket is closed");
});

test("what a peer has sent can be taken after it has gone", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket(rig.options);
  const dealer = new DealerSocket({ ...rig.options, identity: "gone" });
  await rig.join(router, dealer);
  dealer.trySend([bytes("last words")]);
  await rig.settle();
  rig.network.last.close(null);
  await rig.settle();
  expect(rig.kinds()).toContain("disconnected");
  expect(router.receiveReady().map(words)).toEqual([["gone", "last words"]]);
});
