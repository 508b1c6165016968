/**
 * Known defects can be put back: the function that each names is there, and has the text; the copy in which they run
 * has all that a simulation loads. Runs none of them.
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { listLoadedFiles } from "../../scripts/tidy/start.ts";
import { mutants } from "./mutant_table.ts";
import { defects, slowDefect } from "../pubsub/fault/pubsub/defects/defects.ts";
import { checkChanges } from "./mutant_change.ts";
import { copied } from "./mutants.ts";

test.each(mutants)("$name", (mutant) => {
  expect(() => checkChanges(mutant.changes)).not.toThrow();
});

test.each([...defects, slowDefect])("the paper's program: $what", ({ changes }) => {
  expect(() => checkChanges(changes)).not.toThrow();
});

test("the copy has each file that a simulation loads", () => {
  const root = join(import.meta.dirname, "../..");
  const loaded = new Set(["test/world/main.ts"]);
  for (const path of loaded) {
    if (!path.endsWith(".ts")) continue;
    for (const next of listLoadedFiles({ path, text: readFileSync(join(root, path), "utf8") })) loaded.add(next);
  }
  const isCopied = (path: string) => copied.some((place) => path === place || path.startsWith(`${place}/`));
  expect([...loaded].filter((path) => !isCopied(path))).toEqual([]);
});
