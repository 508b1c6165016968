import { expect, test } from "bun:test";
import { DealerSocket } from "../../../../src/protocols/zeromq/dealer_socket.ts";
import { RouterSocket } from "../../../../src/protocols/zeromq/router_socket.ts";
import { eventually } from "../../../support/eventually.ts";
import { seededRandom } from "../../../support/random.ts";
import { ZmtpRelay } from "./zmtp_relay.ts";
import { ZmtpUnits } from "./zmtp_units.ts";
import { messagesOf } from "../../../support/messages_of.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const textOf = (frame: Uint8Array | undefined) => new TextDecoder().decode(frame);

test("a stream is cut into greeting, commands and messages, wherever it is cut by the network", () => {
  const long = new Uint8Array(300).fill(7);
  const stream = Buffer.concat([
    new Uint8Array(64).fill(255),
    Uint8Array.of(4, 2, 1, 2),
    Uint8Array.of(1, 1, 65, 0, 1, 66),
    Uint8Array.of(2, 0, 0, 0, 0, 0, 0, 1, 44),
    long,
  ]);
  for (const step of [1, 3, 64, 70, stream.byteLength]) {
    const units = new ZmtpUnits();
    const found = [];
    for (let at = 0; at < stream.byteLength; at += step) found.push(...units.push(stream.subarray(at, at + step)));
    expect(found.map(({ frames }) => frames?.map(({ byteLength }) => byteLength) ?? null)).toEqual([null, null, [
      1,
      1,
    ], [300]]);
    expect(Buffer.concat(found.map((unit) => unit.bytes)).equals(stream)).toBe(true);
  }
});

test("requests are remembered; replies are dropped, held and let go; connections are cut and come again", async () => {
  await using router = new RouterSocket();
  const port = Number((await router.bind("tcp://127.0.0.1:0")).split(":").at(-1));
  const relay = await ZmtpRelay.start(port, seededRandom(1));
  await using dealer = new DealerSocket({ reconnect: { minMs: 5, maxMs: 20 } });
  dealer.connect(relay.endpoint);
  const heard: string[] = [];
  const echo = (async () => {
    for await (const [identity, ...rest] of messagesOf(router)) {
      await router.send([identity as Uint8Array, ...rest]).catch(() => {});
    }
  })();
  const hear = (async () => {
    for await (const frames of messagesOf(dealer)) heard.push(textOf(frames[0]));
  })();
  const say = (text: string) => dealer.send([bytes(text), bytes("tail")]);
  await say("one");
  await eventually(() => heard.includes("one"));
  relay.impair("replies", { kind: "drop" });
  await say("dropped");
  await eventually(() => relay.remembered.length === 2);
  relay.heal();
  relay.impair("replies", { kind: "hole" });
  await say("held");
  await eventually(() => relay.remembered.length === 3);
  expect(heard).toEqual(["one"]);
  relay.heal();
  await eventually(() => heard.includes("held"));
  expect(heard).not.toContain("dropped");
  relay.cut();
  await eventually(async () => {
    await say("again");
    return heard.includes("again");
  }, { everyMs: 50 });
  expect(relay.remembered[0]?.map((frame) => textOf(frame))).toEqual(["one", "tail"]);
  await dealer.close();
  await router.close();
  await Promise.all([echo, hear]);
  await relay.close();
});
