/** Connections whose messages do not end, at a socket with little memory for them. */
import { expect, test } from "bun:test";
import { RouterSocket } from "../../../../src/protocols/zeromq/router_socket.ts";
import type { ZmtpError } from "../../../../src/protocols/zeromq/zmtp/zmtp_error.ts";
import { frame, greeting, join, ready, text } from "../../../support/zmtp_bytes.ts";
import { rawPeer } from "./raw_peer.ts";
import { SocketRig, words } from "./socket_rig.ts";

const kib = 1024;
const limits = { messageBytesMax: 256 * kib };

test("those that hold most are not read from, others are, and after ten seconds of that they are closed", async () => {
  const rig = new SocketRig();
  const router = new RouterSocket({ ...rig.options, limits, inputBytesMax: 1024 * kib });
  const joined = async (name: string) => {
    const peer = await rawPeer(rig, router);
    peer.end.write(join([greeting(), ready("DEALER", text(name))]));
    await rig.settle();
    return peer;
  };
  const unfinished = [];
  for (const name of ["a", "b", "c", "d"]) {
    const peer = await joined(name);
    // Most of a frame that has more behind it.
    peer.end.write(frame(1, new Uint8Array(200 * kib)).subarray(0, 150 * kib));
    await rig.settle();
    unfinished.push(peer);
  }
  expect(router.load).toEqual({ connections: 4, inputBytes: 4 * (150 * kib - 9) });
  // All hold more than a share; the one whose message began first is read to its end all the same.
  expect(unfinished.map(({ end }) => end.other.isPaused)).toEqual([false, true, true, true]);
  const small = await joined("small");
  small.end.write(frame(0, text("hello")));
  await rig.settle();
  expect(router.receiveReady().map(words)).toEqual([["small", "hello"]]);

  await rig.clock.advance(5000);
  unfinished[0]?.end.write(new Uint8Array(50 * kib + 9));
  unfinished[0]?.end.write(frame(0, text("end")));
  await rig.settle();
  expect(router.receiveReady().map(([from]) => new TextDecoder().decode(from))).toEqual(["a"]);
  for (let second = 5; second < 12; second++) {
    await rig.clock.advance(1000);
    small.end.write(frame(0, text("still here")));
    await rig.settle();
  }
  // The second had its turn when the first was done; without the others memory is not short, and it has all the time.
  expect(unfinished.map(({ isClosed }) => isClosed())).toEqual([false, false, true, true]);
  expect([router.counters.incompleteClosed, router.load.inputBytes]).toEqual([2, 150 * kib - 9]);
  const reasons = rig.events.flatMap((event) => event.kind === "disconnected" ? [event.reason] : []);
  expect(reasons.map((reason) => (reason as ZmtpError).reason)).toEqual(["OVERLOAD", "OVERLOAD"]);
  unfinished[1]?.end.write(join([new Uint8Array(50 * kib + 9), frame(0, text("end"))]));
  await rig.settle();
  expect(router.receiveReady().map(([from]) => new TextDecoder().decode(from))).toContain("b");
  expect(router.load.inputBytes).toBe(0);

  router.receiveReady();
  small.end.write(frame(0, new Uint8Array(250 * kib)));
  await rig.settle();
  expect(router.receiveReady().map((frames) => frames[1]?.byteLength)).toEqual([250 * kib]);
  await router.close({ lingerMs: 0 });
});
