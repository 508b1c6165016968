import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { encodeLengthFrame, JuteFrameDecoder } from "../../../../src/base/wire/length_frame.ts";
import { anyBytes } from "../../../support/jute_arbitrary.ts";
import { property } from "../../../support/property.ts";
import { hex, unlessProtocolError } from "../../../support/wire.ts";

/** The frames that come out of these chunks, copied as their receiver would. */
function framesOf(chunks: readonly Uint8Array[], frameBytesMax?: number): Uint8Array[] {
  const decoder = new JuteFrameDecoder(frameBytesMax);
  return chunks.flatMap((chunk) => [...decoder.push(chunk)].map((frame) => frame.slice()));
}

function join(parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(parts.flatMap((part) => [...part]));
}

/** The bytes in pieces, cut at these places. */
function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const at = [0, ...places.map((place) => place % (bytes.byteLength + 1)), bytes.byteLength].sort((a, b) => a - b);
  return at.slice(1).map((end, index) => bytes.slice(at[index], end));
}

const bodies = fc.array(anyBytes, { maxLength: 8 });
const frame = (body: Uint8Array) => encodeLengthFrame((writer) => writer.raw(body));

property(
  "frames come out as they went in, wherever the stream is cut",
  fc.tuple(bodies, fc.array(fc.nat())),
  ([all, places]) => {
    expect(framesOf(cut(join(all.map(frame)), places))).toEqual(all);
  },
);

property("one byte at a time makes no difference", bodies, (all) => {
  expect(framesOf([...join(all.map(frame))].map((byte) => new Uint8Array([byte])))).toEqual(all);
}, 50);

property(
  "garbage is frames within the limit, or a protocol error",
  fc.tuple(fc.array(anyBytes), fc.nat(100)),
  ([chunks, limit]) => {
    const frames = unlessProtocolError(() => framesOf(chunks, limit));
    for (const body of frames ?? []) expect(body.byteLength).toBeLessThanOrEqual(limit);
  },
);

describe("a frame", () => {
  test("over the limit is refused as soon as its length is there", () => {
    expect(() => framesOf([hex("0000"), hex("0065")], 100)).toThrow(
      "The length of a frame is 101; 0 to 100 bytes are allowed",
    );
    expect(framesOf([hex("0000"), hex("0064")], 100)).toEqual([]);
    expect(() => framesOf([hex("00100000")])).toThrow("1048576; 0 to 1048575 bytes are allowed");
    expect(() => framesOf([hex("ffffffff")])).toThrow("is -1;");
  });

  test("that lies in one chunk is not copied", () => {
    const chunk = hex("00000002 0102 00000001 03");
    const [first, second] = [...new JuteFrameDecoder().push(chunk)];
    expect(first?.buffer).toBe(chunk.buffer);
    expect(second).toEqual(hex("03"));
  });

  test("that spans chunks does not change with the chunk's memory", () => {
    const decoder = new JuteFrameDecoder();
    const chunk = hex("00000003 0102");
    expect([...decoder.push(chunk)]).toEqual([]);
    chunk.fill(9);
    expect([...decoder.push(hex("03"))]).toEqual([hex("010203")]);
  });
});
