/**
 * The retry processor's thread is found, and a message goes its way, wherever baton runs: compiled, under Bun, under
 * Deno.
 */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { verifyRetryStore } from "../../../src/retry/queue/sqlite/verify_retry_store.ts";
import { requireBinary, runtimes } from "../../support/runtimes.ts";

setDefaultTimeout(60_000);

describe.each([...runtimes])("$name", ({ command: [executable = "", ...first] }) => {
  test("stores lines, tries each by a command, and counts them", () => {
    requireBinary();
    const folder = mkdtempSync(join(tmpdir(), "baton-retry-"));
    try {
      const env = {
        PATH: process.env["PATH"],
        DENO_DIR: process.env["DENO_DIR"] ?? join(tmpdir(), "baton-deno-cache"),
      };
      const baton = (words: readonly string[], input = "") =>
        execFileSync(executable, [...first, "retry-processor", ...words, "--store", join(folder, "store")], {
          cwd: folder,
          env,
          input,
          encoding: "utf8",
          stdio: ["pipe", "pipe", "ignore"],
        });
      expect(JSON.parse(baton(["submit", "--lines", "--json"], "a\nb\n"))).toMatchObject({ stored: 2 });
      const ran = baton([
        "run",
        "--until-empty",
        "--interval",
        "1ms",
        "--exec",
        'cat; echo " $BATON_MESSAGE_TRY"; [ $BATON_MESSAGE_TRY = 2 ]',
      ]);
      expect(ran.trim().split("\n").sort()).toEqual(["a 1", "a 2", "b 1", "b 2"]);
      expect(JSON.parse(baton(["stats", "--json"])).states).toMatchObject({ done: { count: 2 } });
      expect(verifyRetryStore(join(folder, "store")).problems).toEqual([]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
