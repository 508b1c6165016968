/** Who is let in: by the authentication, by the number of places, and by what the program says. */
import { expect, test } from "bun:test";
import { DealerSocket } from "../../../../src/protocols/zeromq/dealer_socket.ts";
import { RouterSocket } from "../../../../src/protocols/zeromq/router_socket.ts";
import { curveServerMechanism } from "../../../../src/protocols/zeromq/zmtp/curve_server.ts";
import { curveUser, seededBytes, serverKey } from "../../../support/curve_rig.ts";
import { frame, greeting, join, ready, text } from "../../../support/zmtp_bytes.ts";
import { rawPeer } from "./raw_peer.ts";
import { outcome, SocketRig } from "./socket_rig.ts";

test("a client whose key is not allowed is refused, and nothing is read from it", async () => {
  const rig = new SocketRig();
  const security = curveServerMechanism({ key: serverKey, randomBytes: seededBytes(3), isAllowed: () => false });
  const router = new RouterSocket({ ...rig.options, security });
  const dealer = new DealerSocket({ ...rig.options, ...curveUser(2) });
  dealer.trySend([text("early")]);
  await rig.join(router, dealer);
  expect(router.receiveReady()).toEqual([]);
  const refusals = rig.events.filter(({ kind }) => kind === "handshakeFailed");
  expect(refusals).toMatchObject([{ reason: { reason: "AUTHENTICATION" } }, { reason: { reason: "REFUSED_BY_PEER" } }]);
  await Promise.all([dealer.close({ lingerMs: 0 }), router.close({ lingerMs: 0 })]);
});

test("a connection that the program ends as it is made brings nothing more", async () => {
  const rig = new SocketRig();
  const kinds: string[] = [];
  const dealer: DealerSocket = new DealerSocket({
    ...rig.options,
    onEvent: ({ kind }) => {
      kinds.push(kind);
      if (kind === "connected") void dealer.close({ lingerMs: 0 });
    },
  });
  await rig.network.listen({ kind: "tcp", host: "127.0.0.1", port: 1 }, (far) => {
    far.write(join([greeting(), ready("ROUTER"), frame(0, text("early"))]));
    return { onData() {}, onClosed() {} };
  });
  dealer.connect("tcp://127.0.0.1:1");
  const receiving = outcome(dealer.receive());
  await rig.settle();
  expect(kinds).toEqual(["connected", "disconnected"]);
  expect([receiving.of, dealer.counters.received]).toEqual(["ZMTP_STATE", 0]);
});

test("over the limit the connection goes whose handshake has taken longest, and is counted", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket({ ...rig.options, connectionsMax: 2 });
  const oldest = await rawPeer(rig, router);
  const silent = await rawPeer(rig, router);
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
