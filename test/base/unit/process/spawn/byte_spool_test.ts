/** A spool gives back what it got, in order, from memory and from its file, and closes the file. */
import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { ByteSpool, spoolMemoryBytes } from "../../../../../src/base/process/spawn/byte_spool.ts";

test.each([
  { name: "nothing", lengths: [] },
  { name: "what memory holds", lengths: [1, spoolMemoryBytes - 1] },
  { name: "one byte more", lengths: [spoolMemoryBytes, 1] },
  { name: "pieces longer than memory between short ones", lengths: [3, 3 * spoolMemoryBytes, 5, spoolMemoryBytes, 7] },
])("a spool gives back $name", ({ lengths }) => {
  const before = readdirSync("/proc/self/fd").length;
  const spool = new ByteSpool();
  const all: Uint8Array[] = lengths.map((length, index) => new Uint8Array(length).fill(index + 1));
  for (const bytes of all) spool.add(bytes);
  const pieces = [...spool.pieces()].map((piece) => piece.slice());
  expect(Buffer.concat(pieces).equals(Buffer.concat(all))).toBe(true);
  expect(Math.max(0, ...pieces.map(({ length }) => length))).toBeLessThanOrEqual(spoolMemoryBytes);
  spool[Symbol.dispose]();
  expect(readdirSync("/proc/self/fd").length).toBe(before);
});
