/** The known defects that a change concerns are those of the functions that it changes. */
import { expect, test } from "bun:test";
import { changedMutants } from "./changed_mutants.ts";
import type { Mutant } from "./mutant.ts";

const mutant = (name: string, ...places: string[]): Mutant => ({
  name,
  world: "lock",
  changes: places.map((place) => ({ in: place, from: "a", to: "b" })),
  kinds: [],
  seeds: 1,
});
const mutants = [
  mutant("in one", "queue:Queue.one"),
  mutant("in two", "queue:two"),
  mutant("in the file", "queue"),
  mutant("in another file", "lease:one"),
  mutant("in two files", "lease:one", "queue:two"),
  mutant("in a new file", "fresh:one"),
  mutant("in no file", "gone:one"),
];
const before = `class Queue {\n  one() {\n    a();\n  }\n}\n\nfunction two() {\n  a();\n}\n`;
const changed = (now: string) =>
  changedMutants(mutants, (module) => {
    if (module === "gone") return null;
    if (module === "fresh") return { path: "src/fresh.ts", now: "function one() {\n}\n", before: null };
    if (module === "lease") {
      return { path: "src/lease.ts", now: "function one() {\n}\n", before: "function one() {\n}\n" };
    }
    return { path: "src/queue.ts", now, before };
  }).map(({ name }) => name);
const always = ["in a new file", "in no file"];

test("nothing has changed: what has no earlier text is left", () => {
  expect(changed(before)).toEqual(always);
});

test("a function has changed", () => {
  expect(changed(before.replace("two() {\n  a", "two() {\n  b"))).toEqual([
    "in two",
    "in the file",
    "in two files",
    ...always,
  ]);
});

test("only lines outside of functions have changed, or the place of a function", () => {
  expect(changed(`const a = 1;\n${before}`)).toEqual(["in the file", ...always]);
});

test("a function is gone, or there twice", () => {
  expect(changed(before.replace("one()", "three()"))).toEqual(["in one", "in the file", ...always]);
  expect(changed(`${before}${before.slice(before.indexOf("function"))}`)).toEqual([
    "in two",
    "in the file",
    "in two files",
    ...always,
  ]);
});
