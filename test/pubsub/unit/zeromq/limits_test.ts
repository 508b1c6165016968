/** What is sent at the limits is what a peer with the same limits takes, whatever a socket type adds or leaves out. */
import { describe, expect, test } from "bun:test";
import { DealerSocket } from "../../../../src/protocols/zeromq/dealer_socket.ts";
import { ReplySocket } from "../../../support/reply_socket.ts";
import { type RequestOptions, RequestSocket } from "../../../support/request_socket.ts";
import { RouterSocket } from "../../../../src/protocols/zeromq/router_socket.ts";
import { bytes, SocketRig } from "./socket_rig.ts";

const limits = { messageBytesMax: 100, framesMax: 4 };
const badData = expect.objectContaining({ code: "BAD_DATA" });
const empty = (count: number) => Array.from({ length: count }, () => new Uint8Array(0));
const opened = () => {
  const rig = new SocketRig();
  return { rig, options: { ...rig.options, limits } };
};

describe.each([
  ["a REQ", {}, 1, 0],
  ["a REQ that correlates", { correlate: true }, 2, 4],
])("%s and its REP", (_name, settings: RequestOptions, envelopeFrames, envelopeBytes) => {
  test("count the envelope, both ways", async () => {
    const { rig, options } = opened();
    const req = new RequestSocket({ ...options, ...settings });
    const rep = new ReplySocket(options);
    await rig.join(rep, req);
    const atLimit = [[new Uint8Array(100 - envelopeBytes)], empty(4 - envelopeFrames)];
    const over = [[new Uint8Array(101 - envelopeBytes)], empty(5 - envelopeFrames)];
    for (const message of atLimit) {
      for (const large of over) expect(() => req.trySend(large)).toThrow(badData);
      await req.send(message);
      expect(await rep.receive()).toEqual(message);
      for (const large of over) {
        expect(() => rep.trySend(large)).toThrow(badData);
        await expect(rep.send(large)).rejects.toEqual(badData);
      }
      await rep.send(message);
      expect(await req.receive()).toEqual(message);
    }
    expect(rig.kinds()).toEqual(["connected", "connected"]);
  });
});

test("a ROUTER does not count the identity, which does not travel", async () => {
  const { rig, options } = opened();
  const router = new RouterSocket(options);
  const dealer = new DealerSocket({ ...options, identity: "d".repeat(50) });
  await rig.join(router, dealer);
  const identity = bytes("d".repeat(50));
  for (const message of [[new Uint8Array(100)], empty(4)]) {
    await router.send([identity, ...message]);
    expect(await dealer.receive()).toEqual(message);
    await dealer.send(message);
    expect(await router.receive()).toEqual([identity, ...message]);
  }
  for (const message of [[new Uint8Array(101)], empty(5)]) {
    expect(() => router.trySend([identity, ...message])).toThrow(badData);
  }
  expect(() => router.trySend([identity])).toThrow("the first frame is the peer's identity");
  expect(() => router.trySend([])).toThrow(badData);
});

test("what is over a limit says what is allowed", () => {
  const dealer = new DealerSocket(opened().options);
  const message = "Cannot send a message of 5 frames and 0 bytes: 1 to 4 frames and 100 bytes are allowed";
  expect(() => dealer.trySend(empty(5))).toThrow(message);
  expect(() => dealer.trySend([])).toThrow("Cannot send a message without a frame");
});
