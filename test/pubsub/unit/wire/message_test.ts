import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { decodePubsubMessage, type InvalidPubsubMessage } from "../../../../src/pubsub/wire/decode_message.ts";
import { encodePubsubMessage } from "../../../../src/pubsub/wire/encode_message.ts";
import { batchMessagesMax, bodyBytesMax, headerBytesMax } from "../../../../src/pubsub/wire/message_limits.ts";
import type { PubsubMessage } from "../../../../src/pubsub/wire/pubsub_messages.ts";
import { property } from "../../../support/property.ts";
import { anyMessage } from "../../../support/pubsub_message_arbitrary.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const text = (frame: Uint8Array | undefined) => new TextDecoder().decode(frame);
const refused = (...frames: (string | Uint8Array)[]): InvalidPubsubMessage => {
  const decoded = decodePubsubMessage(frames.map((frame) => typeof frame === "string" ? bytes(frame) : frame));
  if (decoded.name !== null) throw new Error(`It was understood, as ${decoded.name}`);
  return decoded;
};

/** Section 3.1 of the paper, byte by byte. */
const paper: readonly [string, PubsubMessage][] = [
  ["SUBSCRIBE alice news\r\n\r\n", { name: "SUBSCRIBE", sender: "alice", topic: "news" }],
  ["UNSUBSCRIBE alice news\r\n\r\n", { name: "UNSUBSCRIBE", sender: "alice", topic: "news" }],
  ["GET alice news -1\r\n\r\n", { name: "GET", sender: "alice", topic: "news", last: -1 }],
  ["GET alice news 17\r\n\r\n", { name: "GET", sender: "alice", topic: "news", last: 17 }],
  ["PUT bob news 5\r\n\r\nhello\r\n\r\nworld", {
    name: "PUT",
    sender: "bob",
    topic: "news",
    counter: 5,
    body: bytes("hello\r\n\r\nworld"),
  }],
  ["PERIODIC s1\r\n\r\nnews sport", { name: "PERIODIC", sender: "s1", body: bytes("news sport") }],
  ["PERIODIC s1\r\n\r\n", { name: "PERIODIC", sender: "s1" }],
  ["MERGE proxy news tcp://127.0.0.1:5001\r\n\r\n", {
    name: "MERGE",
    sender: "proxy",
    topic: "news",
    address: "tcp://127.0.0.1:5001",
  }],
  ["TRANSFER s1 news\r\n\r\ndata", { name: "TRANSFER", sender: "s1", topic: "news", body: bytes("data") }],
  ["STATUS s1 OK\r\n\r\n", { name: "STATUS", sender: "s1", status: "OK" }],
  ["STATUS s1 OK 18\r\n\r\nhello", {
    name: "STATUS",
    sender: "s1",
    status: "OK",
    messageId: 18,
    body: bytes("hello"),
  }],
];

describe("a message of the paper", () => {
  test.each(paper)("%j is read and written as it stands there", (wire, message) => {
    expect(decodePubsubMessage([bytes(wire)])).toEqual(message);
    expect(encodePubsubMessage(message).map(text)).toEqual([wire]);
  });

  test("takes a name that is not ASCII as UTF-8 or percent-encoded, and gives it back percent-encoded", () => {
    const message = { name: "SUBSCRIBE", sender: "josé", topic: "100% new/s:1" } as const;
    expect(decodePubsubMessage([bytes("SUBSCRIBE josé 100%25%20new/s:1\r\n\r\n")])).toEqual(message);
    expect(text(encodePubsubMessage(message)[0])).toBe("SUBSCRIBE jos%C3%A9 100%25%20new/s:1\r\n\r\n");
  });
});

property("what was encoded is decoded as it was", anyMessage, (message) => {
  expect(decodePubsubMessage(encodePubsubMessage(message))).toEqual(message);
});

property(
  "a message with bytes changed, cut or inserted is a message or a refusal, never an exception",
  fc.tuple(anyMessage, fc.nat(), fc.nat(255), fc.constantFrom("change", "cut", "insert", "frame")),
  ([message, place, byte, how]) => {
    const frames = encodePubsubMessage(message);
    const first = frames[0] as Uint8Array;
    const at = place % first.byteLength;
    const damaged = how === "change" ? first.with(at, byte) : how === "cut" ? first.subarray(0, at) : new Uint8Array([
      ...first.subarray(0, at),
      byte,
      ...first.subarray(at),
    ]);
    const decoded = decodePubsubMessage(
      how === "frame" ? [...frames, new Uint8Array(3)] : [damaged, ...frames.slice(1)],
    );
    // What is still a message can be said again, and is the same then.
    if (decoded.name !== null) expect(decodePubsubMessage(encodePubsubMessage(decoded))).toEqual(decoded);
    else expect(decoded.reason).toStartWith("Cannot read the ");
  },
  1000,
);

property(
  "any bytes are a message or a refusal",
  fc.array(fc.uint8Array({ maxLength: 200 }), { maxLength: 3 }),
  (frames) => {
    expect(decodePubsubMessage(frames)).toHaveProperty("name");
  },
);

describe("a refusal names the field and quotes its value", () => {
  test.each<[string, string, string, string]>([
    ["HALLO alice\r\n\r\n", "name", "HALLO", "it is not one of SUBSCRIBE"],
    ["PUT bob news\r\n\r\n", "fields", "PUT bob news", "PUT has 2 fields; wanted are: sender topic counter"],
    ["PUT bob news 5 6\r\n\r\n", "fields", "PUT bob news 5 6", "wanted are: sender topic counter"],
    ["PUT bob news five\r\n\r\n", "counter", "five", "it is not a decimal number from 0 to 9007199254740991"],
    ["PUT bob news 05\r\n\r\n", "counter", "05", "it is not a decimal number"],
    ["PUT bob news 9007199254740992\r\n\r\n", "counter", "9007199254740992", "it is not a decimal number"],
    ["GET bob news -2\r\n\r\n", "last", "-2", "it is not a message id, or -1 for none"],
    ["GET bob %zz 1\r\n\r\n", "topic", "%zz", "it is not a percent-encoded UTF-8 text"],
    ["GET bob %ff 1\r\n\r\n", "topic", "%ff", "it is not a percent-encoded UTF-8 text"],
    ["GET bob  1\r\n\r\n", "topic", "", "it is not a percent-encoded UTF-8 text"],
    ["SUBSCRIBE bob news\r\n\r\nbody", "body", "4 bytes", "SUBSCRIBE has no body"],
    ["PUT bob news 5\r\nfirst-unacked 3\r\n\r\n", "header", "first-unacked 3", 'it is not "name: value"'],
    ["PUT bob news 5\r\nfirst-unacked: x\r\n\r\n", "first-unacked", "x", "it is not a decimal number"],
    ["PUT bob news 5\r\nfirst-unacked: 3\r\nfirst-unacked: 3\r\n\r\n", "first-unacked", "3", "the header is repeated"],
    ["PUT bob news 5\r\nsession: 0/a\r\n\r\n", "session", "0/a", "it is not a number from 1 on"],
    ["PUT bob news 5\r\ncount: 1\r\n\r\n", "count", "1", "0 frames are behind the header's"],
    ["PUT bob news 5\r\ncount: 1025\r\n\r\n", "count", "1025", "it is not a decimal number from 0 to 1024"],
    ["PUT bob news 5\n\n", "header", "PUT bob news 5%0a", "byte 14 is a stray control character"],
    ["PUT bob\tnews 5\r\n\r\n", "header", "PUT bob%09", "byte 7 is a stray control character"],
    ["PUT bob news 5\r\n", "header", "PUT bob news 5%0d%0a", "there is no CR LF CR LF in its first 16 bytes"],
    ["STATUS s1 FINE\r\n\r\n", "status", "FINE", "it is not one of OK"],
  ])("%j", (wire, field, value, why) => {
    const refusal = refused(wire);
    expect(refusal).toMatchObject({ field, value });
    expect(refusal.reason).toStartWith(`Cannot read the ${field} ${JSON.stringify(value)}: `);
    expect(refusal.reason).toContain(why);
  });

  test("and says whether its sender knows headers", () => {
    expect(refused("PUT bob news five\r\n\r\n").hasHeaders).toBe(false);
    expect(refused("PUT bob news 5\r\nfirst-unacked: x\r\n\r\n").hasHeaders).toBe(true);
  });

  test("a long value is cut", () => {
    expect(refused(`PUT ${"x".repeat(3000)} news 1\r\n\r\n`).value.length).toBeLessThan(70);
  });
});

describe("limits", () => {
  test("a body of 64 MiB passes, one byte more does not", () => {
    const header = bytes("PUT bob news 5\r\n\r\n");
    const frame = new Uint8Array(header.byteLength + bodyBytesMax + 1);
    frame.set(header);
    expect(refused(frame).field).toBe("body");
    expect(decodePubsubMessage([frame.subarray(0, -1)])).toMatchObject({ name: "PUT", counter: 5 });
    const body = new Uint8Array(bodyBytesMax + 1);
    const message = { name: "PUT", sender: "bob", topic: "news", counter: 5 } as const;
    expect(() => encodePubsubMessage({ ...message, body })).toThrow("over the limit");
    expect(() => encodePubsubMessage({ ...message, batch: [body, body.subarray(1)] })).toThrow("over the limit");
    expect(encodePubsubMessage({ ...message, body: body.subarray(1) })[0]?.byteLength).toBe(frame.byteLength - 1);
  });

  test("a header of 64 KiB passes, one byte more does not", () => {
    const filler = (length: number) => `SUBSCRIBE bob news\r\nfuture: ${"x".repeat(length - 32)}\r\n\r\n`;
    expect(filler(headerBytesMax).length).toBe(headerBytesMax);
    expect(decodePubsubMessage([bytes(filler(headerBytesMax))])).toEqual({
      name: "SUBSCRIBE",
      sender: "bob",
      topic: "news",
      headers: {},
    });
    expect(refused(filler(headerBytesMax + 1)).field).toBe("header");
  });

  test("a put may be of nothing, and nothing else may", () => {
    const nothing = encodePubsubMessage({ name: "PUT", sender: "a", topic: "t", counter: 1, batch: [] });
    expect(decodePubsubMessage(nothing)).toMatchObject({ name: "PUT", batch: [] });
    expect(() => encodePubsubMessage({ name: "STATUS", sender: "s", status: "OK", batch: [] })).toThrow("1 to 1024");
    const status = new TextEncoder().encode("STATUS s OK\r\ncount: 0\r\n\r\n");
    expect(decodePubsubMessage([status])).toMatchObject({ name: null, field: "count" });
  });

  test("a batch has a limit of messages, on both sides", () => {
    const batch = Array.from({ length: batchMessagesMax + 1 }, () => new Uint8Array(1));
    const message = { name: "PUT", sender: "bob", topic: "news", counter: 5, headers: {} } as const;
    expect(() => encodePubsubMessage({ ...message, batch })).toThrow("0 to 1024 are possible");
    expect(decodePubsubMessage(encodePubsubMessage({ ...message, batch: batch.slice(1) }))).toMatchObject({
      batch: batch.slice(1),
    });
  });

  test("what no header can carry is not written", () => {
    const put = { name: "PUT", sender: "bob", topic: "news", counter: 5 } as const;
    for (
      const [change, why] of [
        [{ sender: "" }, "must not be empty"],
        [{ topic: "\ud800" }, "lone surrogate"],
        [{ topic: "ä".repeat(600) }, "1200 bytes; 1024 are the limit"],
        [{ counter: -1 }, "-1 is not a decimal number"],
        [{ counter: 2 ** 53 }, "is not a decimal number"],
      ] as const
    ) expect(() => encodePubsubMessage({ ...put, ...change })).toThrow(why);
  });
});
