/** What a signal does to a keeper that somebody runs by hand. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "../../support/eventually.ts";
import { fourLetterWord } from "../../support/four_letter_word.ts";
import { batonCommand } from "../../support/keeper_server.ts";
import { RawClient } from "../../support/raw_client.ts";

let root = "";
let keeper: ChildProcess | null = null;
beforeEach(() => root = mkdtempSync(join(tmpdir(), "baton-signals-")));
afterEach(() => {
  keeper?.kill("SIGKILL");
  rmSync(root, { recursive: true, force: true });
});

const address = () => ({ kind: "unix" as const, path: join(root, "keeper.sock") });

/** `before`: shell words that stand before the keeper's start. */
async function start(before: string): Promise<{ ended: Promise<number | null> }> {
  const words = [...batonCommand(), "keeper", "--data-dir", root];
  keeper = spawn("/bin/sh", ["-c", `${before} exec "$@"`, "sh", ...words], { stdio: "ignore" });
  const ended = new Promise<number | null>((resolve) => keeper?.on("exit", resolve));
  await eventually(async () => await fourLetterWord(address(), "ruok", 500) === "imok", { withinMs: 15_000 });
  return { ended };
}

test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)("%s ends it in order", async (signal) => {
  const { ended } = await start("");
  keeper?.kill(signal);
  expect(await ended).toBe(0);
}, 30_000);

test("what it was started to ignore, as by nohup, it ignores", async () => {
  const { ended } = await start('trap "" HUP;');
  const client = await RawClient.connect(address());
  keeper?.kill("SIGHUP");
  for (let turn = 0; turn < 50; turn++) expect((await client.ping()).err).toBe(0);
  await client.close();
  keeper?.kill("SIGTERM");
  expect(await ended).toBe(0);
}, 30_000);
