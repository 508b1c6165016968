import { afterEach, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { eventually } from "../../../support/eventually.ts";
import { Observer, overlapMs, type Section } from "./observer.ts";
import { ObserverProcess } from "./observer_process.ts";

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

/** An observer of two sections of one group, and what opens them. */
function watchTwo() {
  const folder = mkdtempSync(join(tmpdir(), "baton-observer-"));
  folders.push(folder);
  const paths = { a: join(folder, "a"), b: join(folder, "b") };
  expect(spawnSync("mkfifo", [paths.a, paths.b]).status).toBe(0);
  const seen = new Map<string, Section>();
  const observer = new Observer((section) => seen.set(section.name, section));
  for (const name of ["a", "b"] as const) observer.watch("group", name, paths[name]);
  const open = (name: "a" | "b") => openSync(paths[name], constants.O_WRONLY | constants.O_NONBLOCK);
  return { observer, seen, open, overlap: (nowMs: number) => overlapMs([...seen.values()], nowMs) };
}

test("a section lives from its first open to the end of its last process", () => {
  const { observer, seen, open } = watchTwo();
  observer.look(1);
  expect(seen.size).toBe(0);
  const first = open("a");
  observer.look(2);
  const inherited = open("a");
  writeSync(first, "17\n");
  closeSync(first);
  observer.look(3);
  expect(seen.get("a")).toMatchObject({ openedMs: 2, closedMs: null, text: "17\n" });
  closeSync(inherited);
  observer.look(4);
  expect(seen.get("a")).toMatchObject({ openedMs: 2, closedMs: 4 });
});

test("a section that came and went between two looks is seen when it said something", () => {
  const { observer, seen, open } = watchTwo();
  const descriptor = open("a");
  writeSync(descriptor, "17\n");
  closeSync(descriptor);
  observer.look(5);
  expect(seen.get("a")).toMatchObject({ openedMs: 5, closedMs: 5, text: "17\n" });
});

test("two sections at once are an overlap, one after the other are none", () => {
  const { observer, open, overlap } = watchTwo();
  const a = open("a");
  observer.look(10);
  const b = open("b");
  observer.look(20);
  expect(overlap(25)).toBe(5);
  closeSync(a);
  observer.look(27);
  expect(overlap(99)).toBe(7);
  closeSync(b);
});

test("a hand-over between two looks is no overlap", () => {
  const { observer, seen, open, overlap } = watchTwo();
  const a = open("a");
  observer.look(10);
  closeSync(a);
  const b = open("b");
  observer.look(20);
  expect([seen.get("a")?.closedMs, seen.get("b")?.openedMs]).toEqual([20, 20]);
  expect(overlap(20)).toBe(0);
  closeSync(b);
});

test("remembers how long it did not look at an open section", () => {
  const { observer, open } = watchTwo();
  observer.look(10);
  const a = open("a");
  for (const nowMs of [90, 91, 95, 96]) observer.look(nowMs);
  expect(observer.longestGapMs).toBe(4);
  closeSync(a);
});

test("an observer that was killed says so to whoever waits for it, and afterwards", async () => {
  using observer = new ObserverProcess();
  await observer.now();
  process.kill(observer.pid, "SIGKILL");
  await eventually(() => observer.now().then(() => false, () => true));
  const killed = "The observer has ended with SIGKILL";
  await expect(observer.now()).rejects.toThrow(killed);
  expect(() => observer.section("group", "a")).toThrow(killed);
});
