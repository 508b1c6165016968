/** Which process has a lock on a file, by the kernel's table. */
import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { spawn } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findFileLockHolder, findLockHolderInTable } from "../../../../src/base/storage/file_lock_holder.ts";
import { eventually } from "../../../support/eventually.ts";

const folder = mkdtempSync(join(tmpdir(), "baton-lock-holder-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const table = `1: POSIX  ADVISORY  WRITE 4711 08:01:131130 0 EOF
1: -> POSIX  ADVISORY  WRITE 4712 08:01:131131 0 EOF
2: FLOCK  ADVISORY  WRITE 4713 00:19:77 0 EOF
3: POSIX  ADVISORY  READ  0 fd:00:5 128 128
4: OFDLCK ADVISORY  READ  4715 fd:00:13113 128 128
`;

test("the table of the kernel: the holder of an inode, not a process that waits, nor one of another namespace", () => {
  expect(findLockHolderInTable(table, 131130n)).toBe(4711);
  expect(findLockHolderInTable(table, 77n)).toBe(4713);
  expect(findLockHolderInTable(table, 13113n)).toBe(4715);
  for (const inode of [131131n, 5n, 3n, 1311n]) expect(findLockHolderInTable(table, inode)).toBeNull();
});

test("a process that has a database open exclusively is found; a file without a lock has none", async () => {
  const path = join(folder, "x.sqlite");
  const program = `const { DatabaseSync } = require("node:sqlite"); const database = new DatabaseSync(${
    JSON.stringify(path)
  });
    database.exec("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL");
    database.exec("BEGIN EXCLUSIVE; CREATE TABLE t (x); COMMIT");
    console.log("open"); setInterval(() => {}, 1000)`;
  const child = spawn(process.execPath, ["-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    let said = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => said += text);
    await eventually(() => said.includes("open"), { withinMs: 20_000 });
    if (process.platform === "linux") expect(findFileLockHolder(path)).toBe(child.pid ?? 0);
  } finally {
    child.kill("SIGKILL");
  }
  expect(findFileLockHolder(join(folder, "missing"))).toBeNull();
});
