import { expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readConfiguredFile } from "../../../../src/base/support/private_file.ts";

test("a FIFO is refused, because reading it might never end", () => {
  const folder = mkdtempSync(join(tmpdir(), "baton-fifo-"));
  const fifo = join(folder, "ca.pem");
  expect(spawnSync("mkfifo", [fifo]).status).toBe(0);
  expect(() => readConfiguredFile(fifo)).toThrow(`Cannot read ${fifo}: it is a FIFO`);
  rmSync(folder, { recursive: true });
});
