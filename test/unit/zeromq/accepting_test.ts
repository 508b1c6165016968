/** Who is let in: by the authentication, by the number of places, and by what the program says. */
import { describe, expect, test } from "bun:test";
import { DealerSocket } from "../../../src/zeromq/dealer_socket.ts";
import { RouterSocket } from "../../../src/zeromq/router_socket.ts";
import type { AuthenticationRequest, AuthenticationVerdict } from "../../../src/wire/zmtp/security_mechanism.ts";
import { frame, greeting, join, ready, text } from "../../support/zmtp_bytes.ts";
import { rawPeer } from "./raw_peer.ts";
import { SocketRig, words } from "./socket_rig.ts";

describe("authentication", () => {
  const ask = async (decide: (request: AuthenticationRequest) => Promise<AuthenticationVerdict>) => {
    const rig = new SocketRig();
    const router = new RouterSocket({ ...rig.options, authenticate: decide });
    const raw = await rawPeer(rig, router);
    raw.end.write(join([greeting(), ready("DEALER", text("d")), frame(0, text("early"))]));
    await rig.settle();
    return { rig, router, ...raw };
  };

  test("is asked with address and identity; nothing is read until it is answered", async () => {
    const answer = Promise.withResolvers<AuthenticationVerdict>();
    let asked: AuthenticationRequest | undefined;
    const { rig, router, end } = await ask((request) => (asked = request, answer.promise));
    expect(asked).toEqual({ mechanism: "NULL", address: "192.0.2.9", identity: text("d"), credentials: [] });
    expect(router.receiveReady()).toEqual([]);
    expect(end.other.isPaused).toBe(true);
    answer.resolve({ status: 200, userId: "joe" });
    await rig.settle();
    expect(router.receiveReady().map(words)).toEqual([["d", "early"]]);
    expect(router.peer(text("d"))?.userId).toBe("joe");
    expect(end.other.isPaused).toBe(false);
  });

  test("that refuses, or fails, lets nobody in", async () => {
    for (const decide of [() => Promise.resolve({ status: 400 } as const), () => Promise.reject(new Error("broken"))]) {
      const { router, isClosed, heard } = await ask(decide);
      expect(isClosed()).toBe(true);
      expect(router.receiveReady()).toEqual([]);
      expect(heard()).toMatch(/ERROR.(400|500)$/);
    }
  });

  test("that takes too long ends with the handshake's time", async () => {
    const { rig, isClosed } = await ask(() => new Promise(() => {}));
    await rig.clock.advance(10_000);
    await rig.settle();
    expect(isClosed()).toBe(true);
  });
});

test("a peer that somebody still decides about keeps its place, though it has gone", async () => {
  const rig = new SocketRig();
  const verdicts: ((verdict: AuthenticationVerdict) => void)[] = [];
  const authenticate = () => new Promise<AuthenticationVerdict>((resolve) => verdicts.push(resolve));
  const router = new RouterSocket({ ...rig.options, connectionsMax: 2, authenticate });
  for (let round = 0; round < 5; round++) {
    const { end } = await rawPeer(rig, router);
    end.write(join([greeting(), ready("DEALER")]));
    await rig.settle();
    end.close(null);
    await rig.settle();
  }
  expect([verdicts.length, router.counters.connectionsRefused]).toEqual([2, 3]);
  for (const verdict of verdicts.splice(0)) verdict({ status: 200 });
  await rig.settle();
  expect((await rawPeer(rig, router)).isClosed()).toBe(false);
  await router.close({ lingerMs: 0 });
});

test("a connection that the program ends as it is made brings nothing more", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket(rig.options);
  const end = new Promise<void>((resolve) => {
    const dealer: DealerSocket = new DealerSocket({
      ...rig.options,
      onEvent: ({ kind, endpoint }) => {
        if (kind === "connected") dealer.disconnect(endpoint);
        if (kind !== "disconnected") return;
        queueMicrotask(() => {
          expect(dealer.receiveReady()).toEqual([]);
          resolve();
        });
      },
    });
    void rig.network.listen({ kind: "tcp", host: "127.0.0.1", port: 1 }, (far) => {
      far.write(join([greeting(), ready("ROUTER"), frame(0, text("early"))]));
      return { data() {}, closed() {} };
    }).then(() => dealer.connect("tcp://127.0.0.1:1"));
  });
  await end;
  await router.close();
});

test("over the limit the connection goes whose handshake has taken longest, and is counted", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket({ ...rig.options, connectionsMax: 2 });
  const [oldest, silent] = [await rawPeer(rig, router), await rawPeer(rig, router)];
  const third = await rawPeer(rig, router);
  expect([oldest.isClosed(), silent.isClosed(), third.isClosed()]).toEqual([true, false, false]);
  expect([router.counters.connectionsRefused, router.load.connections]).toEqual([1, 2]);
  expect(rig.kinds()).toEqual(["connectionRefused"]);
});

test("over the limit, and all handshakes done, it is the new connection, until a place is free", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket({ ...rig.options, connectionsMax: 2 });
  const first = await rawPeer(rig, router);
  first.end.write(join([greeting(), ready("DEALER")]));
  const second = await rawPeer(rig, router);
  second.end.write(join([greeting(), ready("DEALER")]));
  await rig.settle();
  expect((await rawPeer(rig, router)).isClosed()).toBe(true);
  expect([first.isClosed(), second.isClosed()]).toEqual([false, false]);
  expect(router.counters.connectionsRefused).toBe(1);
  first.end.close(null);
  await rig.settle();
  expect((await rawPeer(rig, router)).isClosed()).toBe(false);
});
