import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { requireInputFile } from "../../../../commands/input_files.ts";

test("a file is required before a command connects: a missing one, and a folder, are named", () => {
  const folder = mkdtempSync(join(tmpdir(), "baton-input-"));
  try {
    const file = join(folder, "file");
    expect(() => requireInputFile(file, "do something else")).toThrow(
      `Cannot read ${file}: no such file or directory; do something else`,
    );
    expect(() => requireInputFile(folder, "do something else")).toThrow(`Cannot read ${folder}: it is a folder`);
    writeFileSync(file, "");
    requireInputFile(file);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
