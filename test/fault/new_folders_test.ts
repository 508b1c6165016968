/** A store in new folders is there after a power failure: the names above it are on the disk before anything is promised. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { describeWithPeer } from "../support/peers.ts";
import { StorageFaults } from "../support/storage_faults/storage_faults.ts";

setDefaultTimeout(60_000);

const program = join(import.meta.dirname, "../support/storage_faults/open_store.ts");

describeWithPeer("cc", "a store whose folders are new", () => {
  for (const which of ["keeper", "topics", "client", "inbox", "retry"]) {
    test(`${which}: the power fails when it is open`, () => {
      const disk = mkdtempSync(join(tmpdir(), "baton-disk-"));
      const folder = join(disk, "a", "b", "c");
      using faults = new StorageFaults(disk);
      const env = { ...process.env, ...faults.env };
      const { signal, stderr } = spawnSync(process.execPath, [program, folder, which], { env, encoding: "utf8" });
      expect({ signal, stderr }).toEqual({ signal: "SIGKILL", stderr: "" });
      faults.losePower();
      expect(readdirSync(disk, { recursive: true, encoding: "utf8" })).toContain("a/b/c");
      expect(readdirSync(folder)).not.toEqual([]);
      rmSync(disk, { recursive: true });
    });
  }
});
