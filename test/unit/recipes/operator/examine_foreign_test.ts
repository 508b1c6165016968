import { expect, test } from "bun:test";
import { examineForeignLock } from "../../../../src/recipes/operator/examine_foreign.ts";

const lock = (sequence: number, ...names: string[]) => ({
  path: "/a",
  recipe: "kazoo" as const,
  children: names.map((name) => ({ name, isEphemeral: true })),
  sequence,
});
const kindsOf = (found: ReturnType<typeof lock>) => examineForeignLock(found).map(({ kind }) => kind);

test("a counter that two may hold at once at is told before it is there", () => {
  expect(kindsOf(lock(7, "x__lock__0000000006"))).toEqual([]);
  expect(kindsOf(lock(2_100_000_000))).toEqual(["warning"]);
  expect(kindsOf(lock(2 ** 31 - 1))).toEqual(["problem"]);
  expect(kindsOf(lock(7, "x__lock__-147483648"))).toEqual(["problem"]);
});

test("names of another recipe, and of none, are told with whose they are", () => {
  const [other, none] = examineForeignLock(lock(7, "x-lock-0000000001", "nonsense"));
  expect(other?.what).toContain("is of Curator's InterProcessMutex");
  expect(none?.what).toContain('"nonsense" is none of its names');
});
