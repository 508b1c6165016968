import { describe, expect, test } from "bun:test";
import * as fc from "fast-check";
import { ByteReader, ByteWriter } from "../../../../src/base/wire/bytes.ts";
import { anyBytes, anyInt, anyText } from "../../../support/jute_arbitrary.ts";
import { property } from "../../../support/property.ts";
import { hex, unlessProtocolError } from "../../../support/wire.ts";

type Step =
  | { kind: "u8" | "i32"; value: number }
  | { kind: "i64"; value: bigint }
  | { kind: "raw"; value: Uint8Array }
  | {
    kind: "text";
    value: string;
  };

const steps: fc.Arbitrary<Step[]> = fc.array(fc.oneof(
  fc.record({ kind: fc.constant("u8" as const), value: fc.integer({ min: 0, max: 255 }) }),
  fc.record({ kind: fc.constant("i32" as const), value: anyInt }),
  fc.record({ kind: fc.constant("i64" as const), value: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }) }),
  fc.record({ kind: fc.constant("raw" as const), value: anyBytes }),
  fc.record({ kind: fc.constant("text" as const), value: anyText }),
));

function write(writer: ByteWriter, step: Step): void {
  switch (step.kind) {
    case "u8":
      return writer.u8(step.value);
    case "i32":
      return writer.i32(step.value);
    case "i64":
      return writer.i64(step.value);
    case "raw":
      return writer.raw(step.value);
    case "text":
      return writer.utf8WithI32Length(step.value);
  }
}

function read(reader: ByteReader, step: Step): unknown {
  switch (step.kind) {
    case "u8":
      return reader.u8();
    case "i32":
      return reader.i32();
    case "i64":
      return reader.i64();
    case "raw":
      return reader.view(step.value.byteLength);
    case "text":
      return reader.utf8(reader.i32());
  }
}

property(
  "what was written is read, whatever the capacity it began with",
  fc.tuple(steps, fc.nat(40)),
  ([all, capacity]) => {
    const writer = new ByteWriter(capacity);
    for (const step of all) write(writer, step);
    const bytes = writer.finish();
    expect(bytes.byteLength).toBe(writer.length);
    const reader = new ByteReader(bytes);
    for (const step of all) expect(read(reader, step)).toEqual(step.value);
    reader.end();
  },
);

property("no read goes past the end, wherever the input begins in its memory", fc.tuple(anyBytes, steps, fc.nat(9)), (
  [bytes, all, offset],
) => {
  const memory = new Uint8Array(offset + bytes.byteLength + 9).fill(7);
  memory.set(bytes, offset);
  const reader = new ByteReader(memory.subarray(offset, offset + bytes.byteLength));
  for (const step of all) {
    const before = reader.remaining;
    unlessProtocolError(() => read(reader, step));
    expect(reader.remaining).toBeGreaterThanOrEqual(0);
    expect(reader.remaining).toBeLessThanOrEqual(before);
  }
});

describe("a reader", () => {
  test("refuses lengths that are no lengths", () => {
    for (const length of [-1, 4, 0.5, NaN, Infinity, 2 ** 40]) {
      expect(() => new ByteReader(new Uint8Array(3)).view(length)).toThrow(`Cannot read ${length} bytes: 3 are left`);
    }
  });

  test("refuses text that is not UTF-8, and keeps a byte order mark", () => {
    expect(() => new ByteReader(hex("c3 28")).utf8(2)).toThrow("Cannot read 2 bytes as UTF-8 text");
    expect(new ByteReader(hex("ef bb bf 61")).utf8(4)).toBe("\ufeffa");
  });

  test("says what is left over", () => {
    expect(() => new ByteReader(new Uint8Array(2)).end()).toThrow("2 bytes are left over after a complete record");
  });
});

describe("a writer", () => {
  test("counts the bytes of a text, not its UTF-16 units", () => {
    const writer = new ByteWriter();
    writer.utf8WithI32Length("é💧");
    expect(writer.finish()).toEqual(hex("00000006 c3a9 f09f92a7"));
  });

  test("fills in a length only where something was written", () => {
    const writer = new ByteWriter();
    writer.i32(0);
    writer.setI32(0, 258);
    expect(writer.finish()).toEqual(hex("00000102"));
    expect(() => writer.setI32(1, 0)).toThrow(RangeError);
    expect(() => writer.setI32(-1, 0)).toThrow(RangeError);
  });

  test("refuses numbers that would arrive as others", () => {
    const writer = new ByteWriter();
    for (const value of [2 ** 31, -(2 ** 31) - 1, 0xffffffff, 0.5, NaN]) {
      expect(() => writer.i32(value)).toThrow(RangeError);
    }
    for (const value of [2n ** 63n, -(2n ** 63n) - 1n]) expect(() => writer.i64(value)).toThrow(RangeError);
    expect(writer.length).toBe(0);
  });
});
