import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const project = join(import.meta.dirname, "../../../../..");
const page = readFileSync(join(project, "docs/protocol/keeper.md"), "utf8");
const suite = readFileSync(join(project, "test/coordination/conformance/zookeeper_differences_suite.ts"), "utf8");

test("docs/protocol/keeper.md has a row for each difference that the conformance suite shows", () => {
  const single = [...suite.matchAll(/\n {2}test\("([^"]+)"/g)].map(([, title = ""]) => title);
  const listed = [...suite.matchAll(/\]\)\("([^"]+): %s"/g)].map(([, title = ""]) => title);
  expect(single.length).toBeGreaterThan(5);
  for (const title of [...single, ...listed]) expect(page).toContain(`| ${title}`);
});

test("the files that it names are there", () => {
  for (const [, path = ""] of page.matchAll(/`((?:test|src)\/[\w/.]+\.ts)`/g)) {
    expect([path, existsSync(join(project, path))]).toEqual([path, true]);
  }
});
