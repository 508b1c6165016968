import { expect } from "bun:test";
import * as fc from "fast-check";
import { FrameBatch, unpackFrameBatch } from "../../../../../src/pubsub/store/thread/frame_batch.ts";
import { property } from "../../../../support/property.ts";

const entry = fc.record({
  ticket: fc.nat(),
  kind: fc.nat(255),
  epoch: fc.oneof(fc.nat(), fc.constantFrom(0, Number.MAX_SAFE_INTEGER)),
  frames: fc.array(fc.uint8Array({ maxLength: 50 }), { maxLength: 4 }),
});

property("requests and responses are unpacked as they were packed", fc.array(entry, { maxLength: 12 }), (entries) => {
  const batch = new FrameBatch();
  for (let round = 0; round < 2; round++) {
    for (const each of entries) batch.add(each);
    expect(batch.count).toBe(entries.length);
    const piece = batch.take();
    expect(piece.byteLength).toBe(piece.buffer.byteLength);
    expect([...unpackFrameBatch(piece)]).toEqual(entries);
    expect(batch.count).toBe(0);
  }
});
