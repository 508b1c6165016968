import { afterAll, expect, spyOn, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, readFileSync, readSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeAllBytes } from "../../../../src/base/support/write_whole.ts";

const folder = mkdtempSync(join(tmpdir(), "baton-io-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** A pipe of our own that says EAGAIN when it is full. */
function nonBlockingPipe(name: string): number {
  const path = join(folder, name);
  execFileSync("mkfifo", [path]);
  return openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
}

test("everything is written, in the order it was said", () => {
  const fd = openSync(join(folder, "file"), "w");
  const long = "ä".repeat(200_000);
  writeAllBytes(fd, long);
  writeAllBytes(fd, "end");
  closeSync(fd);
  expect(readFileSync(join(folder, "file"), "utf8")).toBe(`${long}end`);
});

test("a full pipe is given up after its time; what fits is written", () => {
  const fd = nonBlockingPipe("full");
  let nowMs = 0;
  using _clock = spyOn(performance, "now").mockImplementation(() => nowMs += 3000);
  expect(() => writeAllBytes(fd, `head${"x".repeat(4 << 20)}`)).toThrow(/EAGAIN/);
  expect(nowMs).toBe(15_000); // the start, and four looks
  const start = new Uint8Array(4);
  readSync(fd, start);
  expect(new TextDecoder().decode(start)).toBe("head");
  closeSync(fd);
});
