/**
 * A store in new folders is there after a power failure: the names above it are on the disk before anything is
 * promised.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { TopicDatabase } from "../../../src/pubsub/store/sqlite/topic_database.ts";
import { verifyTopicStore } from "../../../src/pubsub/store/sqlite/verify_topic_store.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { StorageFaults } from "../../support/storage_faults/storage_faults.ts";

setDefaultTimeout(60_000);

const program = join(import.meta.dirname, "../../support/storage_faults/open_store.ts");

describeWithPeer("cc", "a backup of topics", () => {
  test("without room it fails, and leaves nothing that looks like one; with room it survives the loss of power", () => {
    const [store, disk] = ["store", "disk"].map((name) => mkdtempSync(join(tmpdir(), `baton-${name}-`))) as [
      string,
      string,
    ];
    new TopicDatabase(store).close();
    using faults = new StorageFaults(disk);
    const target = join(disk, "a", "b");
    const backUp = () => {
      const env = { ...process.env, ...faults.env };
      return spawnSync(process.execPath, [program, target, "backup", store], { env, encoding: "utf8" });
    };
    faults.fail({ calls: ["write"], error: "ENOSPC", path: ".sqlite.part", skip: 2 });
    expect(backUp()).toMatchObject({ status: 1, stderr: expect.stringContaining("disk is full") });
    expect(readdirSync(target)).toEqual([]);
    faults.fail({ calls: ["sync"], error: "EIO", path: "/b" });
    expect(backUp().status).toBe(1);
    expect(readdirSync(target)).toEqual([]);
    faults.fail();
    expect(backUp().signal).toBe("SIGKILL");
    faults.losePower();
    expect(verifyTopicStore(target).problems).toEqual([]);
    for (const folder of [store, disk]) rmSync(folder, { recursive: true });
  });
});

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
