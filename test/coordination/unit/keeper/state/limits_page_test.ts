import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { keeperLimitsDefault } from "../../../../../src/coordination/keeper/state/keeper_limits.ts";

const page = readFileSync(join(import.meta.dir, "../../../../../docs/protocol/keeper.md"), "utf8");

test("the keeper's page names every limit, with its value, and no other", () => {
  const rows = [...page.matchAll(/^\| `(\w+)` \| ([\d,]+)( MiB)? \|/gm)].map(([, name, number, unit]) => {
    const value = Number(number?.replaceAll(",", ""));
    return [name, unit === undefined ? value : value * 2 ** 20];
  });
  expect(Object.fromEntries(rows)).toEqual({ ...keeperLimitsDefault });
});
