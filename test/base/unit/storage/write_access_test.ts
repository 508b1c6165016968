import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { whyStoreNotWritable } from "../../../../src/base/storage/write_access.ts";

test("files that can be written, that are on a read-only file system, and that are gone", () => {
  const folder = mkdtempSync(join(tmpdir(), "baton-access-"));
  writeFileSync(join(folder, "data"), "");
  expect(whyStoreNotWritable(folder, "data")).toBe(null);
  rmSync(join(folder, "data"));
  expect(whyStoreNotWritable(folder, "data")).toMatch(
    /^the files of the store cannot be written: .*data: no such file or directory$/,
  );
  rmSync(folder, { recursive: true });
  expect(whyStoreNotWritable(folder, "data")).toMatch(/cannot be written: .*: no such file or directory$/);
  // Also for root.
  expect(whyStoreNotWritable("/proc/self", "limits")).toMatch(
    /cannot be written: .*: (read-only file system|permission denied|operation not permitted)$/,
  );
});
