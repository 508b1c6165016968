import { expect, test } from "bun:test";
import { ZeroMqPeer } from "../../../../src/protocols/zeromq/zeromq_peer.ts";
import { resolveZeroMqSocketOptions } from "../../../../src/protocols/zeromq/socket_options.ts";

test("a long queue that leaves at once is handed over without going as deep as it is long", () => {
  const peer = new ZeroMqPeer(resolveZeroMqSocketOptions({ sendHighWater: 1_000_000 }));
  const count = 200_000;
  for (let number = 0; number < count; number++) {
    expect(peer.offer([new Uint8Array([number & 0xff])])).toBe(true);
  }
  const sent: number[] = [];
  let depth = 0;
  let deepest = 0;
  const link = {
    inFlight: 0,
    inFlightBytes: 0,
    hasRoomToSend: true,
    flush() {},
    resume() {},
    send([body]: readonly Uint8Array[]) {
      depth++;
      deepest = Math.max(deepest, depth);
      sent.push(body?.[0] ?? -1);
      peer.sendQueued(); // there is room again
      depth--;
    },
  };
  peer.attach(link);
  expect([sent.length, deepest, peer.unsent]).toEqual([count, 1, 0]);
  expect(sent.every((value, index) => value === (index & 0xff))).toBe(true);
});
