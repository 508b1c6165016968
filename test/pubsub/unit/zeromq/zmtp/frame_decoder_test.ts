import { describe, expect, test } from "bun:test";
import { ZmtpFrameDecoder } from "../../../../../src/protocols/zeromq/zmtp/frame_decoder.ts";
import { ZmtpFrameWriter } from "../../../../../src/protocols/zeromq/zmtp/frame_writer.ts";
import { zmtpFrameOverheadBytes, zmtpLimitsDefault } from "../../../../../src/protocols/zeromq/zmtp/zmtp_limits.ts";
import { ZmtpPeer } from "../../../../../src/protocols/zeromq/zmtp/zmtp_peer.ts";
import { command, frame, greeting, join, ready, text } from "../../../../support/zmtp_bytes.ts";
import { RecordedPeer } from "./recorded_peer.ts";

function opened(): { decoder: ZmtpFrameDecoder; messages: Uint8Array[][] } {
  const messages: Uint8Array[][] = [];
  const decoder = new ZmtpFrameDecoder(zmtpLimitsDefault, {
    onCommand: () => true,
    onMessage: (frames) => messages.push(frames) > 0,
  });
  decoder.beginTraffic(null, null);
  return { decoder, messages };
}

describe("what the decoder holds", () => {
  test("a frame does not change with the chunk it came in", () => {
    const { decoder, messages } = opened();
    const chunk = join([frame(0, text("ab")), frame(0, new Uint8Array(30_000).fill(1)), frame(0, text("cd"))]);
    decoder.push(chunk);
    chunk.fill(9);
    expect(messages.map(([body]) => body?.[0])).toEqual([97, 1, 99]);
  });

  test("a Buffer is copied as well, although its slice would be a view", () => {
    const recorded = new RecordedPeer();
    const kept: Uint8Array[] = [];
    const chunk = Buffer.from(
      join([greeting(), ready("ROUTER", text("id")), frame(0, text("ab")), frame(0, text("cd"))]),
    );
    const peer = new ZmtpPeer({ ...recorded.options, socketType: "ROUTER" }, {
      ...recorded.listener,
      onReady: ({ identity }) => (kept.push(identity), { prefix: null, wantsMore: true }),
      onMessage: (frames) => kept.push(...frames) > 0,
    });
    peer.push(chunk);
    chunk.fill(9);
    expect(kept.map((bytes) => new TextDecoder().decode(bytes))).toEqual(["id", "ab", "cd"]);
    expect(kept.every((bytes) => bytes.constructor === Uint8Array)).toBe(true);
  });

  test("a small frame keeps no more than 16 KiB of its neighbours", () => {
    const { decoder, messages } = opened();
    decoder.push(join(Array.from({ length: 5000 }, () => frame(0, text("0123456789")))));
    decoder.push(join([frame(0, text("alone"))]));
    expect(messages.length).toBe(5001);
    for (const [body] of messages) expect(body?.buffer.byteLength).toBeLessThanOrEqual(16 << 10);
    expect(messages.at(-1)?.[0]?.buffer.byteLength).toBe(5);
  });

  test("a small frame keeps nothing of a command, of an empty frame or of a large one behind it", () => {
    for (
      const next of [
        command("X", new Uint8Array(60_000)),
        frame(0, new Uint8Array(60_000)),
        frame(0, new Uint8Array(0)),
      ]
    ) {
      const { decoder, messages } = opened();
      for (let round = 0; round < 10; round++) {
        decoder.push(join([frame(0, text("a")), frame(0, text("b")), next.subarray(0, -1)]));
        decoder.push(join([next.subarray(-1)]));
      }
      const small = messages.map(([body]) => body as Uint8Array).filter(({ byteLength }) => byteLength === 1);
      expect(small.length).toBe(20);
      for (const { buffer } of small) expect(buffer.byteLength).toBeLessThanOrEqual(8);
      const empty = messages.map(([body]) => body as Uint8Array).filter(({ byteLength }) => byteLength === 0);
      for (const { buffer } of empty) expect(buffer.byteLength).toBe(0);
    }
  });

  test("a frame before one that claims too much is heard all the same", () => {
    const { decoder, messages } = opened();
    const huge = new Uint8Array(100).fill(0xff);
    huge[0] = 2;
    expect(() => decoder.push(join([frame(0, text("good")), huge]))).toThrow("2^63 bytes");
    expect(messages).toEqual([[text("good")]]);
  });

  test("the frames of a message that is not complete count with their cost", () => {
    const { decoder } = opened();
    for (let count = 0; count < 5000; count++) decoder.push(frame(1, text("x")));
    expect(decoder.heldBytes).toBe(5000 * (1 + zmtpFrameOverheadBytes));
  });

  test("a frame that is only announced takes 16 KiB, and grows with what comes", () => {
    const { decoder } = opened();
    decoder.push(frame(0, new Uint8Array(64 << 20)).subarray(0, 9));
    expect(decoder.heldBytes).toBe(16 << 10);
    for (let sent = 0; sent < 10; sent++) decoder.push(new Uint8Array(64 << 10));
    expect(decoder.heldBytes).toBeLessThanOrEqual(1 << 20);
  });
});

describe("what the writer hands out", () => {
  const pieces = (write: (writer: ZmtpFrameWriter) => void, isNeeded = false) => {
    const writer = new ZmtpFrameWriter();
    write(writer);
    const out: Uint8Array[] = [];
    writer.flush((bytes) => {
      out.push(bytes);
      return isNeeded;
    });
    return { out, writer };
  };

  test("is one piece for many small messages, whatever the buffer had to grow", () => {
    const messages = Array.from({ length: 500 }, (_, index) => [text(`message ${index}`), new Uint8Array(index)]);
    const { out } = pieces((writer) => messages.forEach((message) => writer.addMessage(message)));
    expect(out.length).toBe(1);
    const { decoder, messages: got } = opened();
    decoder.push(join(out));
    expect(got).toEqual(messages);
  });

  test("has a large body as a piece of its own, not copied, in its place", () => {
    const large = new Uint8Array(100_000).fill(7);
    const { out } = pieces((writer) => writer.addMessage([text("before"), large, text("after")]));
    expect(out.map((piece) => piece.byteLength)).toEqual([8 + 9, 100_000, 7]);
    expect(out[1]).toBe(large);
    expect(join(out)).toEqual(join([frame(1, text("before")), frame(1, large), frame(0, text("after"))]));
  });

  test("is not written over as long as somebody needs it", () => {
    const { out, writer } = pieces((one) => one.addMessage([text("first")]), true);
    writer.addMessage([text("again")]);
    expect(out).toEqual([frame(0, text("first"))]);
    expect(writer.pendingBytes).toBe(7);
  });
});
