/** Who has which name at a ROUTER: across connections, beside others with the same, and while messages are unread. */
import { describe, expect, test } from "bun:test";
import { DealerSocket } from "../../../../src/protocols/zeromq/dealer_socket.ts";
import { RouterSocket } from "../../../../src/protocols/zeromq/router_socket.ts";
import { encodeZ85 } from "../../../../src/base/wire/z85.ts";
import { curveServing, curveUser, seededKey } from "../../../support/curve_rig.ts";
import { bytes, outcome, SocketRig, words } from "./socket_rig.ts";

const identitiesOf = (router: RouterSocket) => router.identities.map((identity) => words([identity])[0]).sort();

/** A DEALER with this name where `router` has connected to; each call puts another in its place. */
function place(rig: SocketRig, endpoint: string) {
  let before: DealerSocket | null = null;
  return async (identity: string, options = {}): Promise<DealerSocket> => {
    if (before !== null) {
      await before.close({ lingerMs: 0 });
      await rig.settle();
    }
    const dealer = new DealerSocket({ ...rig.options, identity, ...options });
    await dealer.bind(endpoint);
    await rig.clock.advance(5000);
    await rig.settle();
    return before = dealer;
  };
}

/** Connects, sends this, and is gone. */
async function leave(rig: SocketRig, endpoint: string, identity: string, body: string): Promise<void> {
  const dealer = new DealerSocket({ ...rig.options, identity });
  dealer.connect(endpoint);
  dealer.trySend([bytes(body)]);
  await rig.settle();
  await dealer.close({ lingerMs: 0 });
  await rig.settle();
}

test("the peer of a connect comes back to its own name", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket(rig.options);
  const put = place(rig, "tcp://127.0.0.1:1");
  router.connect("tcp://127.0.0.1:1");
  for (const round of ["first", "second", "third"]) {
    const dealer = await put("d");
    expect(router.trySend([bytes("d"), bytes(round)])).toBe(true);
    await rig.settle();
    expect(dealer.receiveReady().map(words)).toEqual([[round]]);
  }
  expect(router.counters.handshakesFailed).toBe(0);
});

test("a peer whose name is another user's is not let in, and keeps what it has to send until it is", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket({ ...rig.options, ...curveServing() });
  const [first, second] = [11, 12].map((user) =>
    new DealerSocket({ ...rig.options, ...curveUser(user), identity: "d" })
  );
  const endpoint = await rig.join(router, first as DealerSocket);
  (second as DealerSocket).connect(endpoint);
  (second as DealerSocket).trySend([bytes("from the second")]);
  await rig.settle();
  const heard = rig.network.last.other.writes.map((chunk) => new TextDecoder("latin1").decode(chunk)).join("");
  // An ERROR would be final for libzmq, and with a READY messages would be sent.
  expect(heard).not.toMatch(/ERROR|READY/);
  expect(rig.events).toContainEqual(expect.objectContaining({ kind: "handshakeFailed" }));
  expect(router.receiveReady()).toEqual([]);
  expect(second?.counters.dropped).toBe(0);
  await first?.close({ lingerMs: 0 });
  await rig.clock.advance(5000);
  await rig.settle();
  expect(router.receiveReady().map(words)).toEqual([["d", "from the second"]]);
  expect(router.peer(bytes("d"))?.userId).toBe(encodeZ85(seededKey(12).publicKey));
});

test("a peer that comes back under a name of which others' messages are unread loses none of its own", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket(rig.options);
  const bound = await router.bind("tcp://127.0.0.1:0");
  const put = place(rig, "tcp://127.0.0.1:1");
  router.connect("tcp://127.0.0.1:1");
  (await put("a")).trySend([bytes("as a")]);
  await rig.settle();
  await leave(rig, bound, "b", "as b, before");
  const sending = outcome((await put("b")).send([bytes("as b, later")]));
  await rig.settle();
  const got: string[][] = [];
  for (let round = 0; round < 5; round++) {
    got.push(...router.receiveReady().map(words));
    await rig.clock.advance(5000);
    await rig.settle();
  }
  expect(got).toEqual([["a", "as a"], ["b", "as b, before"], ["b", "as b, later"]]);
  expect([sending.of, ...identitiesOf(router)]).toEqual(["done", "b"]);
});

test("what waits for the peer of a connect does not go to one of another name that comes in its place", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket(rig.options);
  const put = place(rig, "tcp://127.0.0.1:1");
  router.connect("tcp://127.0.0.1:1");
  await (await put("d")).close({ lingerMs: 0 });
  await rig.settle();
  expect(router.trySend([bytes("d"), bytes("for d")])).toBe(true);
  const other = await put("e");
  expect(other.receiveReady()).toEqual([]);
  expect(router.counters.dropped).toBe(1);
  expect(router.counters.unroutable).toBe(0);
  expect(router.trySend([bytes("d"), bytes("x")])).toBe(true);
  expect(router.counters.unroutable).toBe(1);
  router.trySend([bytes("e"), bytes("for e")]);
  await rig.settle();
  expect(other.receiveReady().map(words)).toEqual([["for e"]]);
});

describe("the peer of a connect that is refused for its new name", () => {
  /** A ROUTER that connects as CURVE's server, and DEALERs with keys of their own; the user is the key. */
  const opened = () => {
    const rig = new SocketRig();
    const router = new RouterSocket({ ...rig.options, ...curveServing() });
    router.connect("tcp://127.0.0.1:1");
    return { rig, router, put: place(rig, "tcp://127.0.0.1:1") };
  };

  test("keeps the old one, and what waits for it", async () => {
    const { rig, router, put } = opened();
    const endpoint = await router.bind("tcp://127.0.0.1:0");
    const other = new DealerSocket({ ...rig.options, ...curveUser(12), identity: "taken" });
    other.connect(endpoint);
    await put("d", curveUser(11));
    expect(identitiesOf(router)).toEqual(["d", "taken"]);
    await put("taken", curveUser(11));
    expect(router.counters.handshakesFailed).toBeGreaterThan(0);
    expect(identitiesOf(router)).toEqual(["d", "taken"]);
    expect(router.trySend([bytes("d"), bytes("waits")])).toBe(true);
    const dealer = await put("d", curveUser(11));
    expect(dealer.receiveReady().map(words)).toEqual([["waits"]]);
    expect(router.counters.unroutable).toBe(0);
  });

  test("is refused as another user as long as what it has sent as the first is unread", async () => {
    const { rig, router, put } = opened();
    (await put("d", curveUser(11))).trySend([bytes("by the first")]);
    await rig.settle();
    const second = await put("d", curveUser(12));
    const users = [11, 12].map((user) => encodeZ85(seededKey(user).publicKey));
    expect(router.peer(bytes("d"))?.userId).toBe(users[0]);
    expect(router.trySend([bytes("d"), bytes("for the first")])).toBe(true);
    expect(router.receiveReady().map(words)).toEqual([["d", "by the first"]]);
    await rig.clock.advance(60_000);
    await rig.settle();
    second.trySend([bytes("by the second")]);
    await rig.settle();
    expect(router.receiveReady().map(words)).toEqual([["d", "by the second"]]);
    expect(router.peer(bytes("d"))?.userId).toBe(users[1]);
    expect(second.receiveReady()).toEqual([]);
    expect(router.counters.dropped).toBe(1);
  });
});

describe("the frame with the identity", () => {
  const flooded = async () => {
    const rig = new SocketRig();
    const router = new RouterSocket(rig.options);
    const dealer = new DealerSocket({ ...rig.options, identity: "d" });
    await rig.join(router, dealer);
    for (const number of [1, 2, 3, 4]) dealer.trySend([bytes(String(number))]);
    await rig.settle();
    return { rig, router, dealer };
  };
  const damages: [string, (frame: Uint8Array) => unknown][] = [
    ["changed", (frame) => frame.fill(0x78)],
    ["transferred", ({ buffer }) => structuredClone(buffer, { transfer: [buffer as ArrayBuffer] })],
  ];

  test.each(damages)("may be %s by the program, and the next messages and answers are not", async (_what, damage) => {
    const { rig, router, dealer } = await flooded();
    damage((await router.receive())[0] as Uint8Array);
    const [second = bytes("")] = await router.receive();
    expect(words([second])).toEqual(["d"]);
    router.trySend([second, bytes("to the second")]);
    damage(second);
    await rig.settle();
    rig.network.last.close(null);
    await rig.settle();
    await rig.clock.advance(5000);
    await rig.settle();
    dealer.trySend([bytes("5")]);
    await rig.settle();
    const rest = router.receiveReady().map(words);
    expect(rest).toEqual([["d", "3"], ["d", "4"], ["d", "5"]]);
    damage(router.identities[0] as Uint8Array);
    damage(router.peer(bytes("d"))?.identity as Uint8Array);
    router.trySend([bytes("d"), bytes("by name")]);
    await rig.settle();
    expect(dealer.receiveReady().map(words)).toEqual([["to the second"], ["by name"]]);
    expect(identitiesOf(router)).toEqual(["d"]);
    expect(router.counters.unroutable).toBe(0);
  });

  test("counts as what it holds: a changed one is another's name", async () => {
    const { router } = await flooded();
    const [frame = bytes("")] = await router.receive();
    frame.fill(0x78);
    router.trySend([frame, bytes("to x")]);
    expect(router.counters.unroutable).toBe(1);
  });
});
