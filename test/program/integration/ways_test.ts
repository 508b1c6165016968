/** The functions that short calls run: their number is most of what a call costs, and may only fall. */
import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import process from "node:process";

const project = join(import.meta.dir, "../../..");

test("the ways of calls are within their ceilings", () => {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["scripts/ways/main.ts", "--check"], {
    cwd: project,
    encoding: "utf8",
  });
  expect([status, stderr], stdout).toEqual([0, ""]);
}, 300_000);
