import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { whyNotWritable } from "../../../../src/base/storage/write_access.ts";

test("files that can be written, that are on a read-only file system, and that are gone", () => {
  const folder = mkdtempSync(join(tmpdir(), "baton-access-"));
  writeFileSync(join(folder, "data"), "");
  expect(whyNotWritable(folder, "data")).toBe(null);
  rmSync(join(folder, "data"));
  expect(whyNotWritable(folder, "data")).toMatch(/^the files of the store cannot be written: ENOENT.*data/);
  rmSync(folder, { recursive: true });
  expect(whyNotWritable(folder, "data")).toMatch(/cannot be written: ENOENT/);
  // Also for root.
  expect(whyNotWritable("/proc/self", "limits")).toMatch(/cannot be written: E(ROFS|ACCES|PERM)/);
});
