import { expect, test } from "bun:test";
import { KeeperCommitStalls } from "../../../../../src/coordination/keeper/state/commit_stalls.ts";

const stalls = () => new KeeperCommitStalls({ durationMsMin: 500, keptMs: 120_000 });

function commit(all: KeeperCommitStalls, startMs: number, endMs: number): void {
  all.begin(startMs);
  all.end(endMs);
}

test("a commit within a tick gives nothing, a longer one its whole time", () => {
  const all = stalls();
  commit(all, 0, 500);
  expect(all.longestSince(-1, 600)).toBe(0);
  commit(all, 1000, 1501);
  expect(all.longestSince(-1, 2000)).toBe(501);
});

test("a running commit counts as far as it has come: a disk that hangs ends no session heard of before", () => {
  const all = stalls();
  all.begin(1000);
  expect(all.longestSince(900, 1500)).toBe(0);
  expect(all.longestSince(900, 61_000)).toBe(60_000);
});

test("of several commits in a row only the longest counts: an always slow disk keeps no dead sessions", () => {
  const all = stalls();
  for (let startMs = 0; startMs < 80_000; startMs += 4000) commit(all, startMs, startMs + 4000);
  expect(all.longestSince(0, 80_000)).toBe(4000);
});

test("commits that were over when the session was heard of give nothing", () => {
  const all = stalls();
  commit(all, 0, 9000);
  commit(all, 10_000, 13_000);
  commit(all, 20_000, 21_000);
  expect([8999, 9000, 13_000, 21_000].map((sinceMs) => all.longestSince(sinceMs, 22_000))).toEqual([
    9000,
    3000,
    1000,
    0,
  ]);
});

test("what is older than any session is forgotten", () => {
  const all = stalls();
  commit(all, 0, 9000);
  commit(all, 200_000, 201_000);
  expect(all.longestSince(0, 201_000)).toBe(1000);
});
