import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { spawn } from "node:child_process";
import { mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { RetryDatabase } from "../../../src/retry/queue/sqlite/retry_database.ts";
import { RetryStore } from "../../../src/retry/queue/sqlite/retry_store.ts";
import { verifyRetryStore } from "../../../src/retry/queue/sqlite/verify_retry_store.ts";
import { eventually } from "../../support/eventually.ts";
import { RetryRig, rigMessage, rigRules } from "../../support/retry_rig.ts";

setDefaultTimeout(60_000);

class Folder implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), "baton-retry-"));
  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

function program(folder: string, name: string) {
  const child = spawn(process.execPath, [join(import.meta.dir, "../../support/retry_store_program.ts"), folder, name], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let said = "";
  child.stdout.on("data", (chunk: Buffer) => said += chunk.toString());
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  // The last line may be cut by the kill.
  const lines = (word: string) =>
    said.split("\n").slice(0, -1).flatMap((line) => line.startsWith(`${word} `) ? [line.slice(word.length + 1)] : []);
  return { child, ended, lines, said: () => said };
}

describe("a store in a thread", () => {
  test("survives kill -9 of all of its processes, again and again: what was told is there", async () => {
    using folder = new Folder();
    const stored = new Set<string>(), done = new Set<string>();
    for (let round = 0; round < 3; round++) {
      const programs = ["a", "b"].map((name) => program(folder.path, `${name}${round}`));
      const told = 30 * (round + 1);
      await eventually(() => programs.every(({ lines }) => lines("stored").length + lines("done").length > told), {
        withinMs: 20_000,
        what: `both programs to store; they said ${programs.map(({ said }) => said().slice(-200)).join(" / ")}`,
      });
      for (const { child } of programs) child.kill("SIGKILL");
      await Promise.all(programs.map(({ ended }) => ended));
      for (const { lines } of programs) {
        for (const id of lines("stored")) {
          expect([id, stored.has(id)]).toEqual([id, false]);
          stored.add(id);
        }
        for (const seq of lines("done")) {
          expect([seq, done.has(seq)]).toEqual([seq, false]);
          done.add(seq);
        }
      }
      expect(verifyRetryStore(folder.path).problems).toEqual([]);
    }
    using rig = new RetryRig({ folder: folder.path });
    for (const id of stored) expect([id, rig.call("show", id) !== null]).toEqual([id, true]);
    for (const seq of done) expect([seq, rig.call("show", seq)?.state]).toEqual([seq, "done"]);
  });

  test("whose file was taken away is broken, and says so, before it answers for what would be lost", async () => {
    using folder = new Folder();
    const broken = Promise.withResolvers<Error>();
    await using store = await RetryStore.open(folder.path, { rules: rigRules, hooks: { onBroken: broken.resolve } });
    await store.call("accept", [rigMessage("x")], 1);
    renameSync(join(folder.path, "messages.sqlite"), join(folder.path, "elsewhere"));
    await eventually(() => store.call("accept", [rigMessage("y")], 1).then(() => false, () => true));
    expect((await broken.promise).message).toContain("was removed or replaced while it was in use");
  });

  test("that cannot be opened rejects with the reason", async () => {
    using folder = new Folder();
    new RetryDatabase(folder.path).close();
    const missing = RetryStore.open(join(folder.path, "none"), { rules: rigRules, mustExist: true });
    expect(await missing.catch((error) => error)).toMatchObject({ code: "CONFIG" });
  });
});
