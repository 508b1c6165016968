import { expect, test } from "bun:test";
import { planServerDrain, planTopicRebalance } from "../../../../src/pubsub/admin/plan_moves.ts";

const load = (of: Record<string, number>) =>
  new Map(Object.entries(of).map(([id, count]) => [id, Array.from({ length: count }, (_, at) => `${id}-${at}`)]));
const after = (of: Record<string, number>, moves: readonly { from: string; to: string }[]) => {
  const counts = { ...of };
  for (const { from, to } of moves) {
    counts[from] = (counts[from] ?? 0) - 1;
    counts[to] = (counts[to] ?? 0) + 1;
  }
  return counts;
};

test("a server is emptied onto those with the fewest, of several the smallest id", () => {
  const of = { s1: 4, s2: 0, s3: 2 };
  const moves = planServerDrain(load(of), "s1");
  expect(moves.map(({ to }) => to)).toEqual(["s2", "s2", "s2", "s3"]);
  expect(planServerDrain(load({ s1: 3 }), "s1")).toEqual([]);
});

test("all get as many, by as few moves as possible, and nothing is moved twice", () => {
  for (const  of of[{ s1: 7, s2: 0, s3: 1 }, { a: 1, b: 1 }, { a: 2, b: 1 }, { a: 0 }, { a: 5, b: 5, c: 0, d: 0 }]) {
    const moves = planTopicRebalance(load(of));
    const counts = Object.values(after(of, moves));
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
    expect(new Set(moves.map(({ topic }) => topic)).size).toBe(moves.length);
  }
  expect(planTopicRebalance(load({ a: 2, b: 1 }))).toEqual([]);
  expect(planTopicRebalance(new Map())).toEqual([]);
});
