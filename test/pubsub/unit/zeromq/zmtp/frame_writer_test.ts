/** What is written stays what it was, whoever writes next: large buffers go from one writer to another. */
import { expect, test } from "bun:test";
import { ZmtpFrameWriter } from "../../../../../src/protocols/zeromq/zmtp/frame_writer.ts";

/** Bodies that are copied, more than a writer keeps room for. */
const large = (mark: number) => Array.from({ length: 100 }, () => new Uint8Array(1000).fill(mark));

/** As they travel: flags, eight bytes of length, the body. */
function framed(bodies: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const last = bodies.length - 1;
  const parts = bodies.map((body, at) => [at < last ? 3 : 2, 0, 0, 0, 0, 0, 0, 3, 232, ...body]);
  return new Uint8Array(parts.flat());
}

/** As views where they are still needed: then they must stay what they are. */
function flushed(writer: ZmtpFrameWriter, { isNeeded = false } = {}): Uint8Array[] {
  const pieces: Uint8Array[] = [];
  writer.flush((piece) => {
    pieces.push(isNeeded ? piece : piece.slice());
    return isNeeded;
  });
  return pieces;
}

const joined = (pieces: readonly Uint8Array[]) => new Uint8Array(pieces.flatMap((piece) => [...piece]));

test("two writers that have much to say in the same turn do not write into one another", () => {
  const writers = [new ZmtpFrameWriter(), new ZmtpFrameWriter()];
  for (let turn = 0; turn < 3; turn++) {
    for (const [at, writer] of writers.entries()) writer.addMessage(large(10 * turn + at));
    for (const [at, writer] of writers.entries()) {
      expect(joined(flushed(writer))).toEqual(framed(large(10 * turn + at)));
    }
  }
});

test("what has not left yet is nobody's to write into", () => {
  const one = new ZmtpFrameWriter();
  const other = new ZmtpFrameWriter();
  one.addMessage(large(1));
  flushed(one);
  one.addMessage(large(2));
  const waiting = flushed(one, { isNeeded: true });
  for (const writer of [one, other, one]) {
    writer.addMessage(large(3));
    expect(joined(flushed(writer))).toEqual(framed(large(3)));
  }
  expect(joined(waiting)).toEqual(framed(large(2)));
});
