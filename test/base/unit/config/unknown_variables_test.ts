import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { isPerName, variableOf } from "../../../../src/base/config/setting.ts";
import { settingVariables } from "../../../../src/base/config/setting_variables.ts";
import { allSettings } from "../../../../commands/program/settings.ts";
import { unknownVariables } from "../../../../src/base/config/unknown_variables.ts";

test("a misspelled variable is named with the one that was meant, and not its value", () => {
  const env = { BATON_SERVRES: "digest:secret", BATON_SERVERS: "a:1", BATON_LOCK_NAME: "a", PATH: "/bin", BATON: "x" };
  expect(unknownVariables(env)).toEqual(['BATON_SERVRES: baton has no such variable, did you mean "BATON_SERVERS"?']);
  expect(unknownVariables({ BATON_WHATEVER_IT_IS: "1", BATON_CONFIG: "x" })).toEqual([
    "BATON_CONFIG: baton has no such variable",
    "BATON_WHATEVER_IT_IS: baton has no such variable",
  ]);
  expect(unknownVariables({})).toEqual([]);
  expect(unknownVariables({ ...env, BATON_WHATEVER_IT_IS: "x" }, { onlySimilar: true })).toEqual([
    'BATON_SERVRES: baton has no such variable, did you mean "BATON_SERVERS"?',
  ]);
});

test("the list of variables has those of all settings", () => {
  const ofSettings = Object.values(allSettings).flatMap(({ key }) =>
    key === undefined || isPerName(key) ? [] : variableOf(key)
  );
  expect(settingVariables).toEqual([...new Set(ofSettings)].sort());
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
  expect(unknownVariables(Object.fromEntries([...named].map((name) => [name, "x"])))).toEqual([]);
});
