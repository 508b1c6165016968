/** The archives of a release. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tarGzArchive } from "../../../../scripts/packages/tar_archive.ts";

const epoch = 1_700_000_000;
const files = [
  { path: "bin/program", content: Buffer.from("#!/bin/sh\necho runs\n"), executable: true } as const,
  { path: "LICENSE", content: Buffer.from("text") },
  { path: "empty", content: Buffer.of() },
];

let folder = "";
beforeEach(() => folder = mkdtempSync(join(tmpdir(), "baton-tar-")));
afterEach(() => rmSync(folder, { recursive: true }));

test("tar unpacks the files with their content, permissions and time", async () => {
  writeFileSync(join(folder, "a.tar.gz"), await tarGzArchive("top", files, epoch));
  const listed = spawnSync("tar", ["-tvzf", "a.tar.gz", "--utc"], { cwd: folder, encoding: "utf8" });
  expect([listed.stderr, listed.status]).toEqual(["", 0]);
  expect(listed.stdout.replaceAll(/ +/g, " ").trim().split("\n")).toEqual([
    "drwxr-xr-x root/root 0 2023-11-14 22:13 top/",
    "drwxr-xr-x root/root 0 2023-11-14 22:13 top/bin/",
    "-rw-r--r-- root/root 4 2023-11-14 22:13 top/LICENSE",
    "-rwxr-xr-x root/root 20 2023-11-14 22:13 top/bin/program",
    "-rw-r--r-- root/root 0 2023-11-14 22:13 top/empty",
  ]);
  expect(spawnSync("sh", ["-c", "tar -xzf a.tar.gz && top/bin/program"], { cwd: folder, encoding: "utf8" }).stdout)
    .toBe("runs\n");
});

test("the order of the files does not change the bytes", async () => {
  expect(await tarGzArchive("top", files.toReversed(), epoch)).toEqual(await tarGzArchive("top", files, epoch));
});

test("a path that ustar cannot store is refused", async () => {
  const path = "a".repeat(101);
  await expect(tarGzArchive("top", [{ path, content: Buffer.of() }], epoch)).rejects.toThrow("the path is too long");
});
