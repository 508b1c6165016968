/** Every row of docs/development/reported_elsewhere.md names a test that exists. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../../../..");
const page = readFileSync(join(root, "docs/development/reported_elsewhere.md"), "utf8");
const rows = page.split("\n").filter((line) => line.startsWith("| ") && !line.startsWith("| reported"));

test("each row names a test by its file and name", () => {
  expect(rows.length).toBeGreaterThanOrEqual(30);
  for (const row of rows) {
    const [, path = "", name = ""] = /\]\(\.\.\/\.\.\/(test\/[^)]+)\): `(.+)` \|$/.exec(row) ?? [];
    expect([row, path === "" ? false : readFileSync(join(root, path), "utf8").includes(name)]).toEqual([row, true]);
  }
});
