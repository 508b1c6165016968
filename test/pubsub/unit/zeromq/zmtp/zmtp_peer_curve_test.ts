import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { curveClientMechanism } from "../../../../../src/protocols/zeromq/zmtp/curve_client.ts";
import { curveServerMechanism } from "../../../../../src/protocols/zeromq/zmtp/curve_server.ts";
import { clientKey, seededBytes, serverKey } from "../../../../support/curve_rig.ts";
import { property } from "../../../../support/property.ts";
import { cut, text } from "../../../../support/zmtp_bytes.ts";
import { RecordedPeer } from "./recorded_peer.ts";

function pair(seed: number): { client: RecordedPeer; server: RecordedPeer } {
  const factory = { key: clientKey, serverKey: serverKey.publicKey, randomBytes: seededBytes(seed) };
  const client = new RecordedPeer({ mechanism: curveClientMechanism(factory), identity: text("c") });
  const server = new RecordedPeer({
    socketType: "ROUTER",
    mechanism: curveServerMechanism({ key: serverKey, randomBytes: seededBytes(seed + 1) }),
  });
  return { client, server };
}

/** Carries bytes to and fro until both are silent; `pass` may cut or change them. */
function carry(client: RecordedPeer, server: RecordedPeer, pass: (bytes: Uint8Array) => Uint8Array[]): void {
  for (let turn = 0; turn < 12; turn++) {
    server.push(...pass(client.sent()));
    client.push(...pass(server.sent()));
  }
}

const messages = fc.array(
  fc.array(fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.uint8Array({ minLength: 200, maxLength: 400 })), {
    minLength: 1,
    maxLength: 3,
  }),
  { maxLength: 5 },
);

property(
  "sealed messages come out as they went in, wherever the stream is cut",
  fc.tuple(messages, messages, fc.array(fc.nat(), { maxLength: 6 }), fc.nat(1000)),
  ([up, down, places, seed]) => {
    const { client, server } = pair(seed);
    const pass = (bytes: Uint8Array) => cut(bytes, places);
    carry(client, server, pass);
    for (const message of up) client.peer.send(message);
    for (const message of down) server.peer.send(message);
    client.peer.ping(100);
    carry(client, server, pass);
    expect([client.error, server.error]).toEqual([null, null]);
    const plain = (all: typeof up) => all.map((frames) => frames.map((body) => [...body]));
    expect(server.events.slice(1)).toEqual([...plain(up), { pinged: 100 }]);
    expect(client.events.slice(1)).toEqual(plain(down));
  },
  40,
);

property(
  "a byte that was changed on its way ends the connection, or means nothing; no message comes out that was not sent",
  fc.tuple(fc.nat(1000), fc.nat(900), fc.integer({ min: 1, max: 255 })),
  ([seed, place, change]) => {
    const { client, server } = pair(seed);
    let at = 0;
    carry(client, server, (bytes) => {
      const changed = bytes.slice();
      const inside = place - at;
      if (inside >= 0 && inside < changed.length) changed[inside] = (changed[inside] as number) ^ change;
      at += bytes.length;
      return [changed];
    });
    if (!client.peer.isReady || !server.peer.isReady) return;
    client.peer.send([text("sent")]);
    carry(client, server, (bytes) => [bytes]);
    for (const event of server.events.slice(1)) expect(event).toEqual([[...text("sent")]]);
  },
  150,
);

test("a peer that sends a message in the clear after the handshake is cut off", () => {
  const { client, server } = pair(1);
  carry(client, server, (bytes) => [bytes]);
  expect(server.peer.isReady).toBe(true);
  server.push(new Uint8Array([0, 5, ...text("plain")]));
  expect(server.error).toMatchObject({ name: "ZmtpError" });
  expect(server.events.length).toBe(1);
});

test("limits hold for what is inside: a sealed message at the limit passes, one byte more ends the connection", () => {
  const limits = { messageBytesMax: 1000, framesMax: 3, commandBytesMax: 1000 };
  for (const [length, comes] of [[1000, true], [1001, false]] as const) {
    const { client } = pair(2);
    const server = new RecordedPeer({
      socketType: "ROUTER",
      mechanism: curveServerMechanism({ key: serverKey, randomBytes: seededBytes(9) }),
      limits,
    });
    carry(client, server, (bytes) => [bytes]);
    client.peer.send([new Uint8Array(length)]);
    carry(client, server, (bytes) => [bytes]);
    expect([server.events.length === 2, server.error?.reason ?? null]).toEqual([comes, comes ? null : "LIMIT"]);
  }
});
