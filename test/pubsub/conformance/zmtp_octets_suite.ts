/** The octets themselves: a peer written by hand says what RFC 23 and RFC 37 allow, and what they do not. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import type { Implementation } from "../../support/zeromq_peers/implementations.ts";
import type { PeerProcess, PeerSocket } from "../../support/zeromq_peers/peer_process.ts";
import type { SocketOptions, SocketType } from "../../support/zeromq_peers/peer_protocol.ts";
import { command, flag, greeting, longFrame, RawZmtp, ready, shortFrame } from "../../support/zeromq_peers/raw_zmtp.ts";

export function octetsSuite(implementation: Implementation): void {
  const isOwn = implementation.peer === null;
  const opened: { close(): Promise<void> }[] = [];
  let peer: PeerProcess;
  beforeAll(async () => void (peer = await implementation.start()));
  afterEach(async () => {
    for (const each of opened.splice(0).reverse()) await each.close();
  });
  afterAll(() => peer.kill());

  /** A bound socket and a raw connection to it. */
  async function bound(type: SocketType = "DEALER", options: SocketOptions = {}) {
    const socket = await peer.open(type, options);
    opened.push(socket);
    const endpoint = await socket.bind("tcp://127.0.0.1:0");
    return { socket, endpoint, raw: await rawTo(endpoint) };
  }

  async function rawTo(endpoint: string): Promise<RawZmtp> {
    const raw = await RawZmtp.connect(endpoint);
    opened.push(raw);
    return raw;
  }

  async function expectToServe(socket: PeerSocket, raw: RawZmtp): Promise<void> {
    raw.write(shortFrame(flag.more, "ping"), shortFrame(0, ""));
    expect(await socket.receive()).toEqual(["ping", ""]);
    await socket.send(["pong"]);
    await raw.hears(() => raw.messages.length === 1, "a message");
    expect(raw.messages).toEqual([["pong"]]);
  }

  describe("the greeting", () => {
    test("is ZMTP 3 with the mechanism NULL", async () => {
      const { raw } = await bound();
      raw.write(greeting());
      await raw.hears(() => raw.received.length >= 64, "a greeting");
      expect(raw.received.subarray(0, 10).toString("hex")).toMatch(/^ff.{16}7f$/);
      expect(raw.received[10]).toBe(3);
      expect(raw.received.toString("latin1", 12, 64)).toBe(`NULL${"\0".repeat(48)}`);
    });

    test.each([
      ["3.0", greeting({ minor: 0 })],
      ["3.1", greeting({ minor: 1 })],
      ["a minor version that does not exist yet", greeting({ minor: 9 })],
      [
        "a signature whose padding is not empty",
        Buffer.concat([
          Buffer.from([0xff, 1, 2, 3, 4, 5, 6, 7, 8]),
          greeting().subarray(9),
        ]),
      ],
    ])("of a peer with %s is accepted", async (_, octets) => {
      const { socket, raw } = await bound();
      raw.write(octets, ready({ "Socket-Type": "DEALER" }));
      await raw.hearsReady();
      await expectToServe(socket, raw);
    });

    test("may come octet by octet, and so may all that follows", async () => {
      const { socket, raw } = await bound();
      const slowly = async (octets: Buffer) => {
        for (const octet of octets) {
          raw.write(Uint8Array.of(octet));
          await new Promise((resolve) => setImmediate(resolve));
        }
      };
      await slowly(Buffer.concat([greeting(), ready({ "Socket-Type": "DEALER" })]));
      await raw.hearsReady();
      await slowly(Buffer.concat([longFrame(flag.more, "x".repeat(300)), shortFrame(0, "end")]));
      expect(await socket.receive()).toEqual(["x".repeat(300), "end"]);
    });

    test.each([
      ["another mechanism", greeting({ mechanism: "WHATEVER" })],
      // libzmq takes it for ZMTP 1.0, whose frames begin without a greeting.
      ...(isOwn ? [["HTTP", Buffer.from("GET / HTTP/1.1\r\n\r\n".padEnd(128, "\r\n"))]] as const : []),
      [
        "a signature that does not end in 0x7f",
        Buffer.concat([Buffer.from([0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7e]), greeting()]),
      ],
    ])("of a peer with %s ends the connection, and others are served", async (_, octets) => {
      const { socket, endpoint, raw } = await bound();
      raw.write(octets);
      await raw.isDropped();
      const proper = await rawTo(endpoint);
      await proper.shakeHands();
      await expectToServe(socket, proper);
    });

    test("that does not come ends the connection after a time", async () => {
      const { raw } = await bound("DEALER", { handshakeTimeoutMs: 200 });
      await raw.isDropped();
    });
  });

  describe("the handshake", () => {
    test("is READY, with the type of the socket", async () => {
      const { raw } = await bound("ROUTER", { identity: "me" });
      await raw.shakeHands();
      expect(raw.commands[0]).toContain("\x0bSocket-Type\0\0\0\x06ROUTER");
      expect(raw.commands[0]).toContain("\x08Identity\0\0\0\x02me");
    });

    test.each([
      ["names in other letters", ready({ "sOCKET-tYPE": "DEALER", "IDENTITY": "" })],
      ["properties of its own", ready({ "X-Own": "anything", "Socket-Type": "DEALER", "X-Other": "" })],
      ["a long frame", longFrame(flag.command, ready({ "Socket-Type": "DEALER" }).subarray(2))],
    ])("of a peer with %s is accepted", async (_, octets) => {
      const { socket, raw } = await bound();
      raw.write(greeting(), octets);
      await raw.hearsReady();
      await expectToServe(socket, raw);
    });

    test.each([
      ["a message instead of READY", shortFrame(0, "too early")],
      ["a command that is not READY", command("HELLO", "x".repeat(20))],
      ["a socket type that does not exist", ready({ "Socket-Type": "BOOKCASE" })],
      ["a socket type that does not fit", ready({ "Socket-Type": "SUB" })],
      [
        "a property longer than its command",
        command("READY", Buffer.from("\x0bSocket-Type\x7f\0\0\x06DEALER", "latin1")),
      ],
      // libzmq leaves the end to the one that said it.
      ...(isOwn ? [["ERROR", command("ERROR", "\x07because")]] as const : []),
    ])("of a peer with %s ends the connection, and others are served", async (_, octets) => {
      const { socket, endpoint, raw } = await bound();
      raw.write(greeting(), octets);
      await raw.isDropped();
      const proper = await rawTo(endpoint);
      await proper.shakeHands();
      await expectToServe(socket, proper);
    });
  });

  describe("traffic", () => {
    test("a short body may come in a long frame", async () => {
      const { socket, raw } = await bound();
      await raw.shakeHands();
      raw.write(longFrame(flag.more, "short"), longFrame(0, ""));
      expect(await socket.receive()).toEqual(["short", ""]);
    });

    test("lengths of 255 and 256 octets are written in one octet and in eight", async () => {
      const { socket, raw } = await bound();
      await raw.shakeHands();
      await socket.send(["s".repeat(255), "l".repeat(256)]);
      await raw.hears(() => raw.messages.length === 1, "a message");
      const frames = raw.frames.filter(({ flags }) => (flags & flag.command) === 0);
      expect(frames.map(({ flags, body }) => [flags, body.length])).toEqual([[flag.more, 255], [flag.long, 256]]);
    });

    test("a PING is answered with its context", async () => {
      const { raw } = await bound();
      await raw.shakeHands();
      raw.write(command("PING", "\0\x0a"), command("PING", "\0\x0acontext of 16 by"));
      await raw.hears(() => raw.commands.length >= 3, "PONG twice");
      expect(raw.commands.slice(1)).toEqual(["\x04PONG", "\x04PONGcontext of 16 by"]);
    });

    test("who sends a PING with a time to live and then nothing is given up", async () => {
      const { socket, raw } = await bound();
      await raw.shakeHands();
      raw.write(command("PING", "\0\x02")); // tenths of a second
      await raw.isDropped();
      await socket.happened("lost");
    });

    test("a PING tells the time to live in tenths of a second", async () => {
      const { raw } = await bound("DEALER", {
        heartbeatIntervalMs: 50,
        heartbeatTimeoutMs: 30_000,
        heartbeatTtlMs: 30_000,
      });
      await raw.shakeHands();
      await raw.hears(() => raw.commands.length > 1, "PING");
      expect(raw.commands[1]?.slice(0, 7)).toBe("\x04PING\x01\x2c");
    });

    test("a message of which the peer never sends the end is not received, and nothing of it stays", async () => {
      const { socket, endpoint, raw } = await bound();
      await raw.shakeHands();
      raw.write(shortFrame(flag.more, "half"), shortFrame(flag.more, "of it"));
      await raw.close();
      const proper = await rawTo(endpoint);
      await proper.shakeHands();
      await expectToServe(socket, proper);
    });

    test("who connects speaks the same way", async () => {
      const { endpoint, accepted } = await RawZmtp.listen();
      const socket = await peer.open("REQ");
      opened.push(socket);
      await socket.connect(endpoint);
      const raw = await accepted;
      opened.push(raw);
      await raw.shakeHands({ minor: 0, socketType: "REP" });
      await socket.send(["question"]);
      await raw.hears(() => raw.messages.length === 1, "a question");
      expect(raw.messages).toEqual([["", "question"]]);
      raw.write(shortFrame(flag.more, ""), shortFrame(0, "answer"));
      expect(await socket.receive()).toEqual(["answer"]);
    });
  });
}
