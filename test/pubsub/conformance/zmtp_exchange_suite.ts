/** Every pair of socket types that may talk, over every transport and mechanism, whichever side binds. */
import { describe, expect, test } from "bun:test";
import { labels } from "../../support/zeromq_peers/frames.ts";
import type { PeerSocket } from "../../support/zeromq_peers/peer_process.ts";
import type { Frame, SocketType } from "../../support/zeromq_peers/peer_protocol.ts";
import { mechanisms, securityOf, type Side, transports, type ZmtpFixture } from "./zmtp_fixture.ts";

/** The first type is on side a. RFC 28 names the partners of each type. */
const pairs: readonly (readonly [SocketType, SocketType])[] = [
  ["REQ", "REP"],
  ["REP", "REQ"],
  ["REQ", "ROUTER"],
  ["ROUTER", "REQ"],
  ["DEALER", "REP"],
  ["REP", "DEALER"],
  ["DEALER", "ROUTER"],
  ["ROUTER", "DEALER"],
  ["DEALER", "DEALER"],
  ["ROUTER", "ROUTER"],
];

/** Empty frames first, in the middle and last; the edges of the short and the long length; many frames. */
const bodies: readonly (readonly Frame[])[] = [
  ["x"],
  [""],
  ["a", "b", "c"],
  ["", "a"],
  ["a", "", "b"],
  ["a", ""],
  ["", "", ""],
  ["\x00\xff\x01"],
  [{ size: 255, seed: 1 }],
  [{ size: 256, seed: 2 }],
  [{ size: 8191, seed: 3 }, "", { size: 65_537, seed: 4 }],
  Array.from({ length: 60 }, (_, at) => `frame ${at}`),
];

export function exchangeSuite(fixture: ZmtpFixture): void {
  for (const [typeOfA, typeOfB] of pairs) {
    describe(`${typeOfA} and ${typeOfB}`, () => {
      for (const transport of transports) {
        for (const mechanism of mechanisms) {
          for (const binds of ["a", "b"] as const) {
            const who = `${binds === "a" ? typeOfA : typeOfB} binds`;
            test(`exchange messages over ${transport} with ${mechanism}; ${who} (${binds})`, async () => {
              const open = (side: Side, type: SocketType) =>
                fixture.open(side, type, {
                  ...(type === "ROUTER" ? { identity: side } : {}),
                  ...securityOf(mechanism, side === binds),
                });
              const sockets = { a: await open("a", typeOfA), b: await open("b", typeOfB) };
              await (binds === "a"
                ? fixture.link(sockets.a, sockets.b, transport)
                : fixture.link(sockets.b, sockets.a, transport));
              await exchange(sockets.a, sockets.b);
            });
          }
        }
      }
    });
  }
}

/** Sends all bodies from one to the other and back, as the types allow, and expects them unchanged. */
async function exchange(a: PeerSocket, b: PeerSocket): Promise<void> {
  if (a.type === "REQ") return await askEach(a, b);
  if (b.type === "REQ") return await askEach(b, a);
  if (a.type === "REP") return await answerEach(b, a);
  if (b.type === "REP") return await answerEach(a, b);
  if (a.type === "ROUTER" && b.type === "ROUTER") {
    await pass(a, b, { sent: ["b"], received: ["a"] });
    return await pass(b, a, { sent: ["a"], received: ["b"] });
  }
  if (a.type === "ROUTER") return await passThroughRouter(b, a);
  if (b.type === "ROUTER") return await passThroughRouter(a, b);
  await pass(a, b);
  await pass(b, a);
}

/** A REQ asks, REP or ROUTER answers with the same frames. */
async function askEach(req: PeerSocket, answerer: PeerSocket): Promise<void> {
  for (const body of bodies) {
    await req.send(body);
    const request = await answerer.receive();
    // RFC 28: what a ROUTER sees of a REQ is its identity and an empty delimiter.
    const envelope = answerer.type === "ROUTER" ? [request[0] ?? "", ""] : [];
    expect(request).toEqual([...envelope, ...labels(body)]);
    await answerer.send([...envelope, ...body]);
    expect(await req.receive()).toEqual(labels(body));
  }
}

/** A DEALER speaks to a REP as a REQ would: behind an empty delimiter. */
async function answerEach(dealer: PeerSocket, rep: PeerSocket): Promise<void> {
  // Nothing keeps a DEALER from asking many things at once.
  expect(await dealer.sendAll(bodies.map((body) => ["", ...body]))).toBe(bodies.length);
  for (const body of bodies) {
    expect(await rep.receive()).toEqual(labels(body));
    await rep.send(body);
  }
  expect(await dealer.receiveMany(bodies.length)).toEqual(bodies.map((body) => ["", ...labels(body)]));
}

async function passThroughRouter(dealer: PeerSocket, router: PeerSocket): Promise<void> {
  expect(await dealer.sendAll(bodies)).toBe(bodies.length);
  const received = await router.receiveMany(bodies.length);
  const identity = received[0]?.[0] ?? "";
  expect(received).toEqual(bodies.map((body) => [identity, ...labels(body)]));
  await pass(router, dealer, { sent: [identity], received: [] });
}

async function pass(
  from: PeerSocket,
  to: PeerSocket,
  envelope: { sent: readonly string[]; received: readonly string[] } = { sent: [], received: [] },
): Promise<void> {
  expect(await from.sendAll(bodies.map((body) => [...envelope.sent, ...body]))).toBe(bodies.length);
  const received = await to.receiveMany(bodies.length);
  expect(received).toEqual(bodies.map((body) => [...envelope.received, ...labels(body)]));
}
