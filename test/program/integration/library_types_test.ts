/**
 * The public types of the library are those of test/fixtures/library_types.txt, so that a change of them shows in
 * review. BATON_WRITE_GOLDEN=1 writes the file again.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { describePublicTypes } from "../../support/public_types.ts";

setDefaultTimeout(120_000);

const root = join(import.meta.dirname, "../../..");
const golden = join(root, "test/fixtures/library_types.txt");

test("the public types are those of the committed file", () => {
  const folder = mkdtempSync(join(tmpdir(), "baton-types-"));
  try {
    const words = ["-p", "scripts/library/tsconfig.json", "--emitDeclarationOnly", "--outDir", folder];
    const { status, stdout } = spawnSync(join(root, "node_modules/.bin/tsc"), words, { cwd: root, encoding: "utf8" });
    expect([status, stdout]).toEqual([0, ""]);
    const types = describePublicTypes(folder);
    if (process.env["BATON_WRITE_GOLDEN"] === "1") writeFileSync(golden, types);
    expect(types).toBe(readFileSync(golden, "utf8"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
