/** Bytes in chunks become whole lines, each with a prefix; no byte is lost, whatever the chunks. */
import { expect, test } from "bun:test";
import { wholeLineBytesMax, WholeLines } from "../../../../src/base/support/whole_lines.ts";

const text = (bytes: Uint8Array) => Buffer.from(bytes).toString("latin1");
const bytes = (from: string) => Buffer.from(from, "latin1");

test("lines come whole, with their prefix, and the last one gets its line feed", () => {
  const lines = new WholeLines("a\t");
  expect(text(lines.take(bytes("on")))).toBe("");
  expect(text(lines.take(bytes("e\n\ntw")))).toBe("a\tone\na\t\n");
  expect(text(lines.take(bytes("o\xff")))).toBe("");
  expect(text(lines.end())).toBe("a\ttwo\xff\n");
  expect(text(lines.end())).toBe("");
});

test("without a prefix nothing is added, and every division gives the same", () => {
  const all = "1\n22\n\n333";
  for (let at = 0; at <= all.length; at++) {
    const lines = new WholeLines("");
    const parts = [lines.take(bytes(all.slice(0, at))), lines.take(bytes(all.slice(at))), lines.end()];
    expect(parts.map(text).join("")).toBe(`${all}\n`);
  }
});

test("a line without end is divided at the limit, also when it comes byte by byte", () => {
  const lines = new WholeLines(">");
  const long = new Uint8Array(wholeLineBytesMax / 2 + 1).fill(120);
  expect(lines.take(long).length).toBe(0);
  expect(lines.take(long).length).toBe(2 * long.length + 2);
  for (let count = 0; count < 3000; count++) expect(lines.take(bytes("x")).length).toBe(0);
  expect(lines.end().length).toBe(3002);
});
