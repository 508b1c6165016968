import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { anyBytes } from "../../../../support/jute_arbitrary.ts";
import { property } from "../../../../support/property.ts";
import {
  command,
  cut,
  frame,
  greeting,
  join,
  message,
  propertyBytes,
  ready,
  text,
} from "../../../../support/zmtp_bytes.ts";
import { RecordedPeer } from "./recorded_peer.ts";

const limits = { messageBytesMax: 1000, framesMax: 5, commandBytesMax: 300 };
const opening = join([greeting(), ready("ROUTER")]);
const readyEvent = { ready: "ROUTER", identity: [], userId: "", knowsHeartbeats: true };

const anyMessage = fc.array(fc.oneof(anyBytes, fc.uint8Array({ minLength: 250, maxLength: 260 })), {
  minLength: 1,
  maxLength: 3,
});
const anyTraffic = fc.array(
  fc.oneof(
    fc.record({ frames: anyMessage, isLong: fc.boolean() }),
    fc.record({ ttl: fc.nat(0xffff), context: fc.uint8Array({ maxLength: 16 }) }),
  ),
  { maxLength: 12 },
);

property(
  "events are the same wherever the stream is cut",
  fc.tuple(anyTraffic, fc.array(fc.nat())),
  ([all, places]) => {
    const bytes = all.map((item) =>
      "frames" in item
        ? message(item.frames, item.isLong ? true : undefined)
        : command("PING", join([new Uint8Array([item.ttl >> 8, item.ttl & 255]), item.context]))
    );
    const events = all.map((item) =>
      "frames" in item ? item.frames.map((body) => [...body]) : { pinged: item.ttl * 100 }
    );
    const recorded = new RecordedPeer().push(...cut(join([opening, ...bytes]), places));
    expect(recorded.error).toBeNull();
    expect(recorded.events).toEqual([readyEvent, ...events]);
    expect(recorded.peer.heldBytes).toBe(0);
  },
);

property("one byte at a time makes no difference", fc.array(anyMessage, { maxLength: 4 }), (all) => {
  const bytes = join([opening, ...all.map((frames) => message(frames))]);
  const recorded = new RecordedPeer().push(...[...bytes].map((byte) => new Uint8Array([byte])));
  expect(recorded.events).toEqual([readyEvent, ...all.map((frames) => frames.map((body) => [...body]))]);
}, 50);

property("what is sent arrives, and stopping behind each message loses nothing", fc.array(anyMessage), (all) => {
  const sender = new RecordedPeer().push(opening);
  for (const frames of all) sender.peer.send(frames);
  const receiver = new RecordedPeer({ socketType: "ROUTER", stops: true, prefix: text("id") }).push(sender.sent());
  const prefix = [...text("id")];
  expect(receiver.events.slice(1)).toEqual(all.map((frames) => [prefix, ...frames.map((body) => [...body])]));
});

property(
  "garbage gives events or one protocol error, and little is held",
  fc.tuple(fc.constantFrom(0, 11, 64, opening.byteLength), fc.array(anyBytes, { maxLength: 30 }), fc.array(fc.nat())),
  ([begins, garbage, places]) => {
    const bytes = join([opening.slice(0, begins), ...garbage]);
    const recorded = new RecordedPeer({ limits }).push(...cut(bytes, places));
    expect(recorded.peer.heldBytes).toBeLessThanOrEqual(limits.messageBytesMax + 64 * 1024);
    expect(recorded.sent().byteLength).toBeLessThanOrEqual(200 + bytes.byteLength);
  },
  2000,
);

property(
  "a changed byte anywhere gives events or one protocol error",
  fc.tuple(fc.array(anyMessage, { maxLength: 4 }), fc.nat(), fc.nat(255)),
  ([all, place, value]) => {
    const bytes = join([opening, ...all.map((frames) => message(frames))]);
    bytes[place % bytes.byteLength] = value;
    new RecordedPeer({ limits }).push(bytes);
  },
  2000,
);

describe("the greeting", () => {
  test("is sent whole and at once", () => {
    expect(new RecordedPeer().sent()).toEqual(greeting());
  });

  test("of a later version is answered as 3.1", () => {
    expect(new RecordedPeer().push(greeting({ major: 4, minor: 0 }), ready("ROUTER")).events).toEqual([readyEvent]);
  });

  test("of 3.0 is taken, and its sender gets no heartbeats", () => {
    const { events } = new RecordedPeer().push(greeting({ minor: 0 }), ready("ROUTER"));
    expect(events).toEqual([{ ...readyEvent, knowsHeartbeats: false }]);
  });

  test("of an earlier version is refused by the first byte that tells", () => {
    const ended = (bytes: Uint8Array) => new RecordedPeer().push(bytes).error?.message;
    expect(ended(greeting({ major: 1 }).slice(0, 11))).toContain("speaks ZMTP 2.0 or older");
    expect(ended(new Uint8Array([0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0]))).toContain("speaks ZMTP 1.0");
    expect(ended(text("G"))).toBe('The peer does not speak ZMTP 3: its first bytes are "G"');
    expect(ended(text("GET / HTTP/1.1\r\nHost: x"))).toContain('"GET / HTTP/1.1??"');
  });

  test("with another mechanism is refused by name", () => {
    const { error } = new RecordedPeer().push(greeting({ mechanism: "PLAIN" }));
    expect(error).toMatchObject({ code: "REFUSED", reason: "MECHANISM" });
    expect(error?.message).toBe('The peer wants the security mechanism "PLAIN"; this side has NULL');
  });

  test("may say as-server or not, and anything in the padding", () => {
    const bytes = greeting();
    bytes.fill(9, 1, 9);
    bytes[32] = 1;
    expect(new RecordedPeer().push(bytes, ready("REP")).peer.isReady).toBe(true);
  });
});

describe("the NULL handshake", () => {
  test("tells type and identity as soon as the greeting is there", () => {
    const recorded = new RecordedPeer({ identity: text("me") });
    recorded.sent();
    expect(recorded.push(greeting()).sent()).toEqual(ready("DEALER", text("me")));
  });

  test("is over with the peer's properties, whatever the case of their names", () => {
    const properties = join([propertyBytes("socket-TYPE", text("ROUTER")), propertyBytes("X-a", text("b"))]);
    expect(new RecordedPeer().push(greeting(), command("READY", properties)).events).toEqual([readyEvent]);
  });

  test("refuses a type that does not fit, and says so to the peer", () => {
    const recorded = new RecordedPeer();
    recorded.push(greeting()).sent();
    recorded.push(ready("PUB"));
    expect(recorded.error?.message).toBe('A DEALER socket talks to REP, DEALER, ROUTER; the peer is "PUB"');
    expect(new TextDecoder().decode(recorded.sent())).toContain("\x05ERROR");
    expect(recorded.peer.isReady).toBe(false);
  });

  const refusals: Record<string, [Uint8Array, string, RegExp]> = {
    "an ERROR": [command("ERROR", text("\x06go off")), "REFUSED", /refused the connection: "go off"/],
    "an ERROR without a reason": [command("ERROR"), "REFUSED", /refused the connection: ""/],
    "another command": [command("PING", text("\0\0")), "ZMTP_PROTOCOL", /sent PING instead of READY/],
    "a message": [frame(0, text("x")), "ZMTP_PROTOCOL", /a message before the end of the handshake/],
    "a property cut short": [command("READY", text("\x03abc")), "ZMTP_PROTOCOL", /cannot be read/],
    "a property twice": [
      command("READY", join([propertyBytes("a", text("1")), propertyBytes("A", text("2"))])),
      "ZMTP_PROTOCOL",
      /occurs twice/,
    ],
    "a property without a name": [command("READY", propertyBytes("", text("1"))), "ZMTP_PROTOCOL", /has the name ""/],
    "an identity over 255 bytes": [ready("ROUTER", new Uint8Array(256)), "ZMTP_PROTOCOL", /has 256 bytes; 255 are/],
    "a name longer than its command": [frame(4, text("\x09PING")), "ZMTP_PROTOCOL", /of 5 bytes claims a name of 9/],
    "a command without a name": [frame(4, new Uint8Array(0)), "ZMTP_PROTOCOL", /has the name ""/],
  };
  for (const [what, [bytes, code, why]] of Object.entries(refusals)) {
    test(`ends with ${what}`, () => {
      const { error } = new RecordedPeer({ limits: { ...limits, commandBytesMax: 400 } }).push(greeting(), bytes);
      expect(error).toMatchObject({ code, message: expect.stringMatching(why) });
    });
  }
});

describe("traffic", () => {
  const peer = () => new RecordedPeer({ limits }).push(opening);

  test("answers a PING with its context, cut to 16 bytes", () => {
    const recorded = peer();
    recorded.sent();
    recorded.push(command("PING", text("\x00\x0512345678901234567890")));
    expect(recorded.sent()).toEqual(command("PONG", text("1234567890123456")));
    expect(recorded.events[1]).toEqual({ pinged: 500 });
    expect(recorded.push(command("PING", text("\x00"))).error?.message).toContain("has 1 bytes of data");
  });

  test("takes a command between the frames of a message", () => {
    const bytes = join([frame(1, text("a")), command("PING", text("\0\0")), frame(0, text("b"))]);
    expect(peer().push(bytes).events.slice(1)).toEqual([{ pinged: 0 }, [[...text("a")], [...text("b")]]]);
  });

  test("ignores other commands", () => {
    const recorded = peer().push(command("SUBSCRIBE", text("t")), command("PONG"), message([text("a")]));
    expect(recorded.events.slice(1)).toEqual([[[...text("a")]]]);
    expect(recorded.error).toBeNull();
  });

  const refusals: Record<string, [Uint8Array, RegExp]> = {
    "a reserved flag": [frame(8, text("x")), /has the flags 0x08/],
    "a command with MORE": [frame(5, text("\x04PING\0\0")), /has the flags 0x05/],
    "a frame of 2^63 bytes": [new Uint8Array([2, 0x80, 0, 0, 0, 0, 0, 0, 0]), /2\^63/],
    "a frame over the limit": [frame(0, new Uint8Array(1001)).slice(0, 9), /has 1001 bytes or more; 1000 are/],
    "a huge frame": [new Uint8Array([2, 0x7f, 255, 255, 255, 255, 255, 255, 255]), /bytes or more; 1000 are/],
    "a message over the limit": [
      join([frame(1, new Uint8Array(600)), frame(0, new Uint8Array(401)).slice(0, 9)]),
      /1001/,
    ],
    "too many frames": [join(Array.from({ length: 6 }, () => frame(1, new Uint8Array(0)))), /more than 5 frames/],
    "a command over the limit": [frame(4, new Uint8Array(301)).slice(0, 9), /has 301 bytes; 300 are/],
  };
  for (const [what, [bytes, why]] of Object.entries(refusals)) {
    test(`ends with ${what}, before its body has come`, () => {
      for (const chunks of [[bytes], [...bytes].map((byte) => new Uint8Array([byte]))]) {
        const recorded = peer().push(...chunks);
        expect(recorded.error).toMatchObject({ code: "ZMTP_PROTOCOL", message: expect.stringMatching(why) });
        expect(recorded.events.length).toBe(1);
      }
    });
  }

  test("takes a message that is exactly at the limits", () => {
    const frames = Array.from({ length: 5 }, () => new Uint8Array(200));
    expect(peer().push(message(frames)).events.length).toBe(2);
  });
});
