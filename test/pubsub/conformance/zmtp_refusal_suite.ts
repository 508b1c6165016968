/** What must not talk to each other does not: types that do not fit, mechanisms that differ, keys that are wrong. */
import { describe, expect, test } from "bun:test";
import { client, server, stranger } from "../../fixtures/zeromq_keys.ts";
import type { PeerSocket } from "../../support/zeromq_peers/peer_process.ts";
import type { SocketOptions, SocketType } from "../../support/zeromq_peers/peer_protocol.ts";
import { curve, otherSide, type Side, type ZmtpFixture } from "./zmtp_fixture.ts";

type OwnType = "REQ" | "REP" | "DEALER" | "ROUTER";

const strangers: readonly (readonly [OwnType, OwnType])[] = [
  ["REQ", "REQ"],
  ["REQ", "DEALER"],
  ["DEALER", "REQ"],
  ["REP", "REP"],
  ["REP", "ROUTER"],
  ["ROUTER", "REP"],
];
/** Only libzmq has these. */
const foreign: readonly SocketType[] = ["PUB", "SUB", "PUSH", "PULL", "PAIR"];

/** A pair of sockets that must not become ready, by what differs between them. */
const differences: Record<string, { readonly binder: SocketOptions; readonly connecter: SocketOptions }> = {
  "a client with NULL at a server with CURVE": { binder: curve.server, connecter: {} },
  "a client with CURVE at a server with NULL": { binder: {}, connecter: curve.client },
  "a client that expects another server's key": {
    binder: curve.server,
    connecter: { security: { mechanism: "CURVE", keys: client, serverKey: stranger.publicKey } },
  },
  "a client whose key the server does not let in": {
    binder: { security: { mechanism: "CURVE", keys: server, clients: [client.publicHex] } },
    connecter: { security: { mechanism: "CURVE", keys: stranger, serverKey: server.publicKey } },
  },
};

export function refusalSuite(fixture: ZmtpFixture): void {
  const { a, b } = fixture.implementations;
  const pairs: (readonly [OwnType, SocketType])[] = [...strangers];
  if (a.peer === null && b.peer !== null) {
    for (const type of ["REQ", "REP", "DEALER", "ROUTER"] as const) {
      for (const other of foreign) pairs.push([type, other]);
    }
  }

  describe("types", () => {
    for (const [typeOfA, typeOfB] of pairs) {
      test(`${typeOfA} and ${typeOfB} do not talk, and who binds serves a proper peer`, async () => {
        const sockets = { binder: await fixture.open("a", typeOfA), connecter: await fixture.open("b", typeOfB) };
        const endpoint = await sockets.binder.bind(fixture.endpoint());
        await sockets.connecter.connect(endpoint);
        await expectRefusal(sockets.binder, sockets.connecter);
        await sockets.connecter.close();
        const partner = await fixture.open("b", partnerOf[typeOfA]);
        await partner.connect(endpoint);
        await Promise.all([sockets.binder.happened("ready"), partner.happened("ready")]);
      });
    }
  });

  describe("security", () => {
    for (const [what, { binder, connecter }] of Object.entries(differences)) {
      for (const binds of ["a", "b"] as const) {
        test(`${what} is refused (${binds} binds)`, async () => {
          await refuseThenServe(fixture, { binds, binder, connecter });
        });
      }
    }
    for (const [side, implementation] of [["a", b], ["b", a]] as const) {
      if (fixture.implementations[side].peer !== null || implementation.peer === null) continue;
      test(`a client with PLAIN is refused by ${fixture.implementations[side].name} with NULL`, async () => {
        const connecter: SocketOptions = { security: { mechanism: "PLAIN" } };
        await refuseThenServe(fixture, { binds: side, binder: {}, connecter });
      });
    }

    test("a client whose key the server lets in is served", async () => {
      const security = { mechanism: "CURVE", keys: server, clients: [client.publicHex] } as const;
      for (const binds of ["a", "b"] as const) {
        const binder = await fixture.open(binds, "DEALER", { security });
        const connecter = await fixture.open(otherSide[binds], "DEALER", curve.client);
        await fixture.link(binder, connecter);
        await connecter.send(["let in"]);
        expect(await binder.receive()).toEqual(["let in"]);
      }
    });

    for (const binds of ["a", "b"] as const) {
      test(`the side that connects may be CURVE's server (${binds} binds)`, async () => {
        const binder = await fixture.open(binds, "DEALER", curve.client);
        const connecter = await fixture.open(otherSide[binds], "DEALER", curve.server);
        await fixture.link(binder, connecter);
        await binder.send(["there"]);
        expect(await connecter.receive()).toEqual(["there"]);
      });
    }
  });
}

const partnerOf: Record<OwnType, OwnType> = { REQ: "REP", REP: "REQ", DEALER: "DEALER", ROUTER: "DEALER" };

async function refuseThenServe(
  fixture: ZmtpFixture,
  options: { binds: Side; binder: SocketOptions; connecter: SocketOptions },
): Promise<void> {
  const binder = await fixture.open(options.binds, "DEALER", options.binder);
  const connecter = await fixture.open(otherSide[options.binds], "DEALER", options.connecter);
  const endpoint = await binder.bind(fixture.endpoint());
  await connecter.connect(endpoint);
  await expectRefusal(binder, connecter);
  await connecter.close();
  const proper = await fixture.open(
    otherSide[options.binds],
    "DEALER",
    options.binder.security === undefined ? {} : curve.client,
  );
  await proper.connect(endpoint);
  await proper.send(["proper"]);
  expect(await binder.receive()).toEqual(["proper"]);
}

/** One of the two says so, or that the connection went away at least; and neither was ever ready. */
async function expectRefusal(binder: PeerSocket, connecter: PeerSocket): Promise<void> {
  const ends = [binder, connecter].flatMap((socket) => [socket.happened("refused"), socket.happened("lost")]);
  await Promise.any(ends);
  expect(await Promise.all([binder.count("ready"), connecter.count("ready")])).toEqual([0, 0]);
}
