import { expect, test } from "bun:test";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readPoolItems, readPoolItemsAsTheyCome } from "../../../../src/coordination/pool/pool_source.ts";
import { poolItemsBytesMax, poolItemsMax, poolPath } from "../../../../src/coordination/pool/pool_path.ts";

const folder = mkdtempSync(join(tmpdir(), "baton-pool-source-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
const read = (file: string) =>
  readPoolItems({ kind: "file", file }, {
    component: "c",
    path: poolPath("c"),
    signal: new AbortController().signal,
    query: () => Promise.reject(new Error("there is none")),
  });

test("a file is read in the turn in which it is asked for: others wait for the component", async () => {
  const file = join(folder, "list");
  writeFileSync(file, "a\nb ü\n");
  let turns = 0;
  const counting = setInterval(() => turns++, 0);
  expect(await read(file)).toEqual(["a", "b ü"]);
  clearInterval(counting);
  expect(turns).toBe(0);
});

test("a pipe is read as slowly as it is written", async () => {
  const pipe = join(folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  const writer = spawn("/bin/sh", ["-c", `{ echo a; sleep 0.05; echo b; } > "${pipe}"`], { stdio: "ignore" });
  expect(await read(pipe)).toEqual(["a", "b"]);
  writer.kill();
});

test("names that are no UTF-8 are refused with their line: two of them might share a lock", async () => {
  const file = join(folder, "bytes");
  writeFileSync(file, Buffer.concat([Buffer.from("a\nb \ufffd\n"), Buffer.from([0xff, 0x0a, 0xfe, 0x0a])]));
  await expect(read(file)).rejects.toThrow(/bytes, line 3: item names must be UTF-8, and this line is not/);
  const pipe = join(folder, "bytes-pipe");
  execFileSync("mkfifo", [pipe]);
  const writer = spawn("/bin/sh", ["-c", `printf 'a\\377' > "${pipe}"`], { stdio: "ignore" });
  await expect(read(pipe)).rejects.toThrow(/line 1: item names/);
  writer.kill();
});

test("what cannot be read is named, and what is too long", async () => {
  await expect(read(join(folder, "none"))).rejects.toThrow(/Cannot read the items from .*none/);
  await expect(read(folder)).rejects.toThrow(/Cannot read the items from/);
  const file = join(folder, "long");
  writeFileSync(file, "");
  truncateSync(file, poolItemsBytesMax + 1);
  await expect(read(file)).rejects.toThrow(/longer than/);
});

test("items come in batches: duplicates, line numbers and the limit go over all of them", async () => {
  async function* chunks(...parts: readonly (string | Uint8Array)[]) {
    for (const part of parts) yield Buffer.from(part);
  }
  const options = { component: "c", path: poolPath("c") };
  const batches: string[] = [];
  for await (const batch of readPoolItemsAsTheyCome({ ...options, chunks: chunks("a\nb", "\r\n", "a\n\nc\nb\nd") })) {
    batches.push(batch.join());
  }
  expect(batches).toEqual(["a", "b", "c", "d"]);
  const readAll = async (...parts: readonly (string | Uint8Array)[]) => {
    const read: string[] = [];
    for await (const batch of readPoolItemsAsTheyCome({ ...options, chunks: chunks(...parts) })) read.push(...batch);
    return read;
  };
  await expect(readAll("a\nb\n", "c\n\x01\n")).rejects.toThrow(/^standard input, line 4: /);
  await expect(readAll("a\n", Uint8Array.of(0x0a, 0xff, 0x0a))).rejects.toThrow(/^standard input, line 3: .*UTF-8/);
  const many = Array.from({ length: poolItemsMax }, (_, index) => `${index}\n`).join("");
  expect((await readAll(many, "0\n")).length).toBe(poolItemsMax);
  await expect(readAll(many, "one more\n")).rejects.toThrow(/more than 100000 items/);
});
