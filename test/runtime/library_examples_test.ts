/** The library's examples, as they stand in the documentation, in both runtimes. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Keeper, startKeeper } from "../../src/baton.ts";

setDefaultTimeout(60_000);

const folder = mkdtempSync(join(tmpdir(), "baton-examples-"));
const socket = { kind: "unix", path: join(folder, "keeper.sock") } as const;
const root = join(import.meta.dirname, "../..");
let keeper: Keeper;
beforeAll(async () => keeper = await startKeeper({ dataDir: join(folder, "data"), listen: [socket] }));
afterAll(async () => {
  await keeper.close();
  rmSync(folder, { recursive: true });
});

const runtimes: [name: string, command: string[]][] = [["Bun", ["bun"]], ["Deno", ["deno", "run", "-A", "--quiet"]]];

async function runWith(command: readonly string[], example: string): Promise<string> {
  const file = join(root, "docs/examples/library", example);
  const child = Bun.spawn([...command, file, `unix:${socket.path}`], { stdout: "pipe", stderr: "pipe" });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  expect([code, err]).toEqual([0, ""]);
  return out;
}

for (const [name, command] of runtimes) {
  const run = (example: string) => runWith(command, example);
  describe(name, () => {
    test("four tasks share one lock", async () => {
      const lines = (await run("shared_lock.ts")).trim().split("\n");
      expect(lines).toHaveLength(8);
      for (let at = 0; at < lines.length; at += 2) {
        const [, id] = /^(\d) has the lock$/.exec(lines[at] ?? "") ?? [];
        expect(lines[at + 1]).toBe(`${id} releases it`);
      }
    });

    test("no party of a barrier begins a round before all are through the one before", async () => {
      const lines = (await run("barrier.ts")).trim().split("\n");
      const round = (number: number) => [1, 2, 3].map((rank) => `round ${number}: ${rank} of 3`);
      expect([lines.slice(0, 3).sort(), lines.slice(3).sort()]).toEqual([round(1), round(2)]);
    });

    test("two pools work through one list, each item once; one that failed is tried again", async () => {
      expect(await run("pool.ts")).toBe("once each: true\ndone: 12, failed: 0\nall items are done: true\n");
    });

    test("an election is followed from leader to leader", async () => {
      expect(await run("election.ts")).toBe("10.0.0.1:7000 leads\n10.0.0.2:7000 leads\ntokens grow: true\n");
    });
  });
}
