/** What scripts/compile.sh asks of Bun: Bun ignores an option that it does not know, without a word. */
import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";

const project = join(import.meta.dir, "../..");
const program = "test/fixtures/compiled_calls.ts";

test("a binary starts with high thresholds for the compilation of JavaScript", () => {
  const folder = mkdtempSync(join(tmpdir(), "baton-compile-"));
  try {
    const binary = join(folder, "program");
    const script = `. scripts/compile.sh && compile_baton "$0" "" ${program}`;
    const built = spawnSync("sh", ["-c", script, binary], { cwd: project, encoding: "utf8" });
    expect(built.status, built.stderr).toBe(0);
    expect(spawnSync(binary, ["300"], { encoding: "utf8" }).stdout).toBe("not optimized\n");
    // Without the option, the same program is optimized.
    expect(spawnSync(process.execPath, [program, "20000"], { cwd: project, encoding: "utf8" }).stdout).toBe(
      "optimized\n",
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}, 60_000);
