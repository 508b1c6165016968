import { expect, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ReleaseAnswer, ReleaseBox, ReleaseDoor } from "../../../../src/process/hold/release_mailbox.ts";

const request = { id: "r1", asking: { pid: 1, startTicks: 2 }, sweeps: false };
const answer: ReleaseAnswer = { id: "r1", result: "unswept", running: [{ pid: 3, command: "sleep 60" }], more: 0 };

test("a request is heard once, and its answer is read", () => {
  using box = ReleaseBox.open("abc");
  using door = ReleaseDoor.open(box.path, "abc");
  expect(box.next()).toBeNull();
  expect(door?.answer()).toBeNull();
  door?.ask({ ...request, id: "a longer one, that is written over" });
  door?.ask(request);
  expect(box.next()).toEqual(request);
  expect(box.next()).toBeNull();
  box.answer(answer);
  expect(door?.answer()).toEqual(answer);
  door?.ask({ ...request, id: "r2" });
  expect(box.next()?.id).toBe("r2");
});

test("the answer can be read when the holder is gone", () => {
  const box = ReleaseBox.open("abc");
  using door = ReleaseDoor.open(box.path, "abc");
  box.answer({ ...answer, result: "released" });
  box[Symbol.dispose]();
  expect(door?.answer()?.result).toBe("released");
  box.answer({ ...answer, result: "lost" }); // the number of its descriptor may be another file's by now
  expect([box.next(), door?.answer()?.result]).toEqual([null, "released"]);
});

test("there is no door to a holder that is gone, to another one, or to one that has released", () => {
  const box = ReleaseBox.open("abc");
  const { path } = box;
  expect(ReleaseDoor.open(path, "abd")).toBeNull();
  box.answer({ ...answer, result: "released" });
  expect(ReleaseDoor.open(path, "abc")).toBeNull();
  box[Symbol.dispose]();
  expect(ReleaseDoor.open(path, "abc")).toBeNull();
});

test("nor to a pipe, a device or a folder that has the number of its descriptor by now", () => {
  const folder = mkdtempSync(join(tmpdir(), "baton-door-"));
  const pipe = join(folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  expect(ReleaseDoor.open(pipe, "abc")).toBeNull();
  expect(ReleaseDoor.open("/dev/zero", "abc")).toBeNull();
  expect(ReleaseDoor.open(folder, "abc")).toBeNull();
  // A file that fails when it is read.
  if (process.platform === "linux") expect(ReleaseDoor.open("/proc/self/mem", "abc")).toBeNull();
  rmSync(folder, { recursive: true });
});
