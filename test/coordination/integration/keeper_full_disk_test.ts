/**
 * A keeper on a disk that its nodes fill: they can be read and deleted, also by a keeper that is started then. It needs
 * root.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Keeper, startKeeper } from "../../../src/coordination/keeper/lifecycle/start_keeper.ts";
import { zooKeeperErrorNumbers } from "../../../src/protocols/zookeeper/jute/zookeeper_error_codes.ts";
import { verifyKeeperData } from "../../../src/coordination/keeper/storage/data_check_and_backup.ts";
import { node } from "../conformance/zookeeper_fixture.ts";
import { RawClient } from "../../support/raw_client.ts";
import { canMountDisk, SmallDisk } from "../../support/small_disk.ts";

setDefaultTimeout(60_000);

const hasDisks = canMountDisk("no keeper is tried on a disk that its nodes fill");

let root = "";
let disk: SmallDisk | null = null;
let keeper: Keeper | null = null;
beforeEach(() => root = mkdtempSync(join(tmpdir(), "baton-full-keeper-")));
afterEach(async () => {
  await keeper?.close();
  disk?.[Symbol.dispose]();
  disk = null;
  rmSync(root, { recursive: true, force: true });
});

const dataDir = () => join(root, "disk/data");

async function start(): Promise<RawClient> {
  const address = { kind: "unix" as const, path: join(root, "k.sock") };
  keeper = await startKeeper({ dataDir: dataDir(), listen: [address] });
  return await RawClient.connect(address);
}

test.skipIf(!hasDisks).each([
  { bytes: 1_000_000, least: 10 },
  { bytes: 30_000, least: 300 },
])(
  "nodes of $bytes bytes: created until one is refused, read and deleted after a restart",
  async ({ bytes, least }) => {
    disk = new SmallDisk(join(root, "disk"), 32);
    let client = await start();
    const data = new Uint8Array(bytes).fill(7);
    let made = 0;
    for (;; made++) {
      const { err } = await client.call("create", node(`/n${made}`, { data }));
      if (err === 0) continue;
      expect(err).toBe(zooKeeperErrorNumbers.QUOTAEXCEEDED);
      break;
    }
    expect(made).toBeGreaterThanOrEqual(least);
    await keeper?.close();
    client = await start();
    for (let index = 0; index < made; index++) {
      expect((await client.call("getData", { path: `/n${index}`, watch: false })).value?.data?.byteLength).toBe(bytes);
      expect((await client.call("delete", { path: `/n${index}`, version: -1 })).err).toBe(0);
    }
    expect((await client.call("create", node("/again", { data }))).err).toBe(0);
    await keeper?.close();
    expect(verifyKeeperData(dataDir())).toMatchObject({ nodes: 5 });
  },
);
