/** The library that loses, fails and kills: whatever it says about a program's storage has to be so. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { spawnSync, type SpawnSyncReturns } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { DatabaseSync } from "node:sqlite";
import { describeWithPeer } from "./peers.ts";
import { seededRandom, testSeed } from "./random.ts";
import { StorageFaults } from "./storage_faults/storage_faults.ts";

setDefaultTimeout(30_000);

const seed = testSeed();

describeWithPeer("cc", `a storage that forgets and fails [BATON_SEED=${seed}]`, () => {
  let folder: string;
  let faults: StorageFaults;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "baton-storage-"));
    faults = new StorageFaults(folder);
  });
  afterEach(() => {
    faults[Symbol.dispose]();
    rmSync(folder, { recursive: true });
  });

  const run = (act: string, { timeout }: { readonly timeout?: number } = {}): SpawnSyncReturns<string> => {
    const program = join(import.meta.dirname, "storage_faults/program.ts");
    const env = { ...process.env, ...faults.env };
    return spawnSync(process.execPath, [program, folder, act], {
      env,
      encoding: "utf8",
      timeout,
      killSignal: "SIGKILL",
    });
  };
  const text = (name: string) => readFileSync(join(folder, name), "utf8");

  const lastRow = (): number => {
    try {
      using database = new DatabaseSync(join(folder, "rows.sqlite"));
      return Number(database.prepare("SELECT max(id) AS id FROM rows").get()?.["id"]);
    } catch {
      return 0; // no table, or damaged
    }
  };

  test("what node:fs has written and not synced is lost, content and names, and nothing else", () => {
    faults.killAt(0);
    expect(run("files").signal).toBe("SIGKILL");
    expect(readdirSync(folder).sort()).toEqual(["content lost", "kept", "kept folder", "name lost", "renamed"]);
    faults.losePower();
    expect(readdirSync(folder).sort()).toEqual(["content lost", "kept", "kept folder", "longer"]);
    expect([text("kept"), text("content lost"), text("longer")]).toEqual(["synced", "", "synced"]);
  });

  test("with syncs that lie everything is lost", () => {
    faults.killAt(0);
    faults.syncsLie = true;
    run("files");
    faults.losePower();
    expect(readdirSync(folder)).toEqual([]);
  });

  test("SQLite keeps what it has committed when unsynced writes are lost, but not with syncs that lie", () => {
    const random = seededRandom(seed);
    const keepsAll = (step: number): boolean => {
      faults.killAt(step);
      const committed = run("rows").stdout.split("\n").length - 1;
      faults.losePower(random);
      const stored = lastRow();
      for (const name of readdirSync(folder)) rmSync(join(folder, name));
      return stored >= committed;
    };
    const steps = [5, 20, 40, 60, 61, 62, 63, 64];
    expect(steps.filter((step) => !keepsAll(step))).toEqual([]);
    faults.syncsLie = true;
    expect(steps.filter((step) => !keepsAll(step)).length).toBeGreaterThan(0);
  });

  test("a child that is being made when its program is killed ends too", () => {
    for (let step = 100; step < 140; step++) {
      faults.killAt(step);
      const { signal, error } = run("spawn", { timeout: 10_000 });
      expect([signal, error ?? null]).toEqual(["SIGKILL", null]);
    }
  });

  test("a chosen call fails with the chosen error, as often as was said", () => {
    faults.killAt(40);
    faults.fail({ calls: ["sync"], error: "EIO", path: "-wal", skip: 3, times: 1 });
    const { stderr, stdout, status } = run("rows");
    expect([status, stdout.trim().split("\n").length, faults.hits]).toEqual([1, 1, 1]);
    expect(stderr).toContain("disk I/O error");
    for (const name of readdirSync(folder)) rmSync(join(folder, name));
    faults.killAt(0);
    faults.fail({ calls: ["write"], error: "ENOSPC", isShort: true });
    expect(run("rows").stderr).toMatch(/full|I\/O/);
  });
});
