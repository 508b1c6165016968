/** The topic store's threads are found, and its storage works, wherever baton runs: compiled, under Bun, under Deno. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { verifyTopicStore } from "../../../src/pubsub/store/sqlite/verify_topic_store.ts";

setDefaultTimeout(120_000);

const project = join(import.meta.dir, "../../..");
const program = "test/support/topic_store_program.ts";
const folder = mkdtempSync(join(tmpdir(), "baton-topic-store-"));
const compiled = join(folder, "program");

/** Compiled exactly as baton is: by the same function, with the same workers. */
beforeAll(() => {
  execFileSync("sh", ["-c", `. scripts/compile.sh && compile_baton "$1" "" ${program}`, "sh", compiled], {
    cwd: project,
  });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each([
  { name: "compiled", command: [compiled] },
  { name: "Bun", command: ["node_modules/.bin/bun", program] },
  { name: "Deno", command: ["node_modules/.bin/deno", "run", "-A", "--quiet", program] },
])("$name", ({ name, command: [executable = "", ...words] }) => {
  test("puts and gets through its threads, and closes", () => {
    const dir = join(folder, `data ${name}`);
    const env = { PATH: process.env["PATH"], DENO_DIR: process.env["DENO_DIR"] ?? join(tmpdir(), "baton-deno-cache") };
    const said = execFileSync(executable, [...words, dir, "500"], { cwd: project, env, encoding: "utf8" }).split("\n");
    expect(said.filter((line) => line.startsWith("ok "))).toHaveLength(500);
    expect(said.slice(-3)).toEqual(["read 500", "closed", ""]);
    expect(verifyTopicStore(dir).problems).toEqual([]);
  });
});
