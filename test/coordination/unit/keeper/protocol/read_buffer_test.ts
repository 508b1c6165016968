import { expect, test } from "bun:test";
import * as fc from "fast-check";
import { KeeperReadBuffer } from "../../../../../src/coordination/keeper/protocol/read_buffer.ts";
import { encodeLengthFrame } from "../../../../../src/base/wire/length_frame.ts";
import { anyBytes } from "../../../../support/jute_arbitrary.ts";
import { property } from "../../../../support/property.ts";

const frame = (body: Uint8Array) => encodeLengthFrame((writer) => writer.raw(body));
const stream = (bodies: readonly Uint8Array[]) => Buffer.concat(bodies.map(frame));
const frameBytesMax = 1 << 20;

property(
  "frames come out as they went in, however they arrive and however few are taken at a time",
  fc.tuple(fc.array(anyBytes, { maxLength: 20 }), fc.integer({ min: 1, max: 40 }), fc.integer({ min: 1, max: 5 })),
  ([bodies, chunkBytes, atATime]) => {
    const whole = stream(bodies);
    const intake = new KeeperReadBuffer(frameBytesMax);
    const taken: Uint8Array[] = [];
    const take = (count: number) => {
      for (let left = count; left > 0; left--) {
        const next = intake.nextFrame();
        if (next === null) return;
        taken.push(next.slice());
      }
    };
    for (let at = 0; at < whole.byteLength; at += chunkBytes) {
      const chunk = Uint8Array.from(whole.subarray(at, at + chunkBytes));
      intake.push(chunk);
      take(atATime);
      intake.copyRest();
      chunk.fill(0xff); // it was lent for the call
    }
    take(Infinity);
    expect(taken).toEqual(bodies.map((body) => Uint8Array.from(body)));
    expect(intake.isEmpty).toBe(true);
    expect(intake.heldBytes).toBe(0);
  },
);

test("what it holds is counted: what nobody has taken, and the room for what is not complete", () => {
  const intake = new KeeperReadBuffer(frameBytesMax);
  intake.push(stream(Array(1000).fill(new Uint8Array(16))));
  intake.nextFrame();
  intake.copyRest();
  expect(intake.heldBytes).toBeGreaterThan(15_000);
  expect(intake.heldBytes).toBeLessThan(20_001);
  while (intake.nextFrame() !== null);
  expect(intake.heldBytes).toBe(0);
  intake.push(new Uint8Array([0, 8, 0, 0, 1]));
  expect(intake.nextFrame()).toBeNull();
  expect(intake.heldBytes).toBe(0x80000);
});

test("a frame that is too long is refused as soon as its length is there", () => {
  const intake = new KeeperReadBuffer(100);
  intake.push(new Uint8Array([0, 0, 0, 101]));
  expect(() => intake.nextFrame()).toThrow(/0 to 100 bytes are allowed/);
});
