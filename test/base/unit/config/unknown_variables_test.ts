import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { loadProductSettings } from "../../../../commands/products.ts";
import { describeUnknownVariables } from "../../../../src/base/config/unknown_variables.ts";

const { all: allSettings } = await loadProductSettings();

test("a misspelled variable is named with the one that was meant, and not its value", () => {
  const env = { BATON_SERVRES: "digest:secret", BATON_SERVERS: "a:1", BATON_LOCK_NAME: "a", PATH: "/bin", BATON: "x" };
  expect(describeUnknownVariables(env, allSettings)).toEqual([
    'BATON_SERVRES: baton has no such variable, did you mean "BATON_SERVERS"?',
  ]);
  expect(describeUnknownVariables({ BATON_WHATEVER_IT_IS: "1", BATON_CONFIG: "x" }, allSettings)).toEqual([
    "BATON_CONFIG: baton has no such variable",
    "BATON_WHATEVER_IT_IS: baton has no such variable",
  ]);
  expect(describeUnknownVariables({}, allSettings)).toEqual([]);
  expect(describeUnknownVariables({ ...env, BATON_WHATEVER_IT_IS: "x" }, allSettings, { onlySimilar: true })).toEqual([
    'BATON_SERVRES: baton has no such variable, did you mean "BATON_SERVERS"?',
  ]);
});

test("each variable that the product names is known", () => {
  const root = join(import.meta.dirname, "../../../..");
  const named = new Set<string>();
  for (const folder of ["src", "commands"]) {
    for (const entry of readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })) {
      if (!entry.endsWith(".ts")) continue;
      const text = readFileSync(join(root, folder, entry), "utf8");
      for (const [name] of text.matchAll(/\bBATON_[A-Z_]*[A-Z]\b/g)) named.add(name);
    }
  }
  expect(named.size).toBeGreaterThan(20);
  expect(describeUnknownVariables(Object.fromEntries([...named].map((name) => [name, "x"])), allSettings)).toEqual([]);
});
