/** An operator's view of the data: whole or damaged, and a copy to start from. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { backUpKeeperData, verifyKeeperData } from "../../../src/coordination/keeper/storage/data_check_and_backup.ts";
import { type Keeper, startKeeper } from "../../../src/coordination/keeper/lifecycle/start_keeper.ts";
import { zxidChecksum } from "../../../src/coordination/keeper/storage/keeper_rows.ts";
import { createFlag } from "../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { node } from "../conformance/zookeeper_fixture.ts";
import { RawClient } from "../../support/raw_client.ts";
import { canMountDisk, SmallDisk } from "../../support/small_disk.ts";

let root = "";
beforeEach(() => root = mkdtempSync(join(tmpdir(), "baton-data-")));
afterEach(() => rmSync(root, { recursive: true, force: true }));

async function running(name: string): Promise<{ keeper: Keeper; client: RawClient }> {
  const address = { kind: "unix" as const, path: join(root, `${name}.sock`) };
  const keeper = await startKeeper({ dataDir: join(root, name), listen: [address] });
  return { keeper, client: await RawClient.connect(address) };
}

test("running or not, what is there is counted and found whole", async () => {
  const { keeper, client } = await running("a");
  await client.call("create", node("/x", { flags: createFlag.ephemeral }));
  expect(verifyKeeperData(join(root, "a"))).toMatchObject({ nodes: 5, sessions: 1 });
  const zxid = (await client.call("exists", { path: "/x", watch: false })).zxid;
  await keeper.close();
  expect(verifyKeeperData(join(root, "a"))).toMatchObject({ nodes: 5, sessions: 1, zxid });
});

test.each([
  ["a node without a parent", "DELETE FROM nodes WHERE id = (SELECT max(id) - 1 FROM nodes)", /\/x\/y has no parent/],
  ["an ephemeral without a session", "DELETE FROM sessions", /belongs to session/],
  ["a row cut short", "UPDATE nodes SET body = substr(body, 1, 20) WHERE id = 2", /Row 2 is damaged/],
  [
    "a row under another's number",
    "UPDATE nodes SET id = 99 WHERE id = (SELECT max(id) FROM nodes)",
    /Row 99 is damaged/,
  ],
  ["a zxid of another transaction", "UPDATE progress SET zxid = 1", /transaction, 1, does not match its checksum/],
  [
    "a zxid from the past",
    `UPDATE progress SET zxid = 1, checksum = ${zxidChecksum(1n)}`,
    /has zxid \d+; the last zxid is/,
  ],
])("%s is found", async (_, sql, message) => {
  const { keeper, client } = await running("a");
  await client.call("create", node("/e", { flags: createFlag.ephemeral }));
  await client.call("create", node("/x"));
  await client.call("create", node("/x/y"));
  await keeper.close();
  const database = new DatabaseSync(join(root, "a/keeper.sqlite"));
  database.exec(sql);
  database.close();
  expect(() => verifyKeeperData(join(root, "a"))).toThrow(message);
});

test("a keeper whose log has lost something that was stored does not start, and says so", async () => {
  const { keeper, client } = await running("a");
  for (let index = 0; index < 5; index++) await client.call("create", node(`/n-${index}`));
  cpSync(join(root, "a"), join(root, "b"), { recursive: true });
  await keeper.close();
  const log = join(root, "b/keeper.sqlite-wal");
  const bytes = readFileSync(log);
  bytes[4000] = 1 ^ (bytes[4000] ?? 0);
  writeFileSync(log, bytes);
  const started = await running("b").then(() => "started", (error) => error);
  expect(started).toMatchObject({
    code: "IO",
    message: expect.stringMatching(/the log is damaged in frame 1: its index lists \d+ frames\..*backup/),
  });
});

test("a file cut to nothing is reported as empty, is not backed up, and no keeper starts with it", async () => {
  const { keeper } = await running("a");
  await keeper.close();
  truncateSync(join(root, "a/keeper.sqlite"), 0);
  const { code, message } = await running("a").then(() => ({ code: "none", message: "" }), (thrown) => thrown);
  expect([code, message]).toEqual([
    "CONFIG",
    expect.stringMatching(/sqlite is empty: the file was truncated\. Replace it .* while no lock is held$/),
  ]);
  expect(() => verifyKeeperData(join(root, "a"))).toThrow("keeper.sqlite: the file was truncated");
  expect(() => backUpKeeperData(join(root, "a"), join(root, "copy"))).toThrow("keeper.sqlite: the file was truncated");
  expect(existsSync(join(root, "copy"))).toBe(false);
});

test("a keeper starts from a backup made while another one was writing", async () => {
  const { keeper, client } = await running("a");
  await client.call("create", node("/before"));
  const writing = Array.from({ length: 200 }, (_, index) => client.call("create", node(`/during-${index}`)));
  const file = join(root, "copy");
  backUpKeeperData(join(root, "a"), file);
  await Promise.all(writing);
  await keeper.close();
  expect(statSync(file).mode & 0o777).toBe(0o600);
  expect(() => backUpKeeperData(join(root, "a"), file)).toThrow(/already exists/);

  mkdirSync(join(root, "b"), { mode: 0o700 });
  renameSync(file, join(root, "b/keeper.sqlite"));
  verifyKeeperData(join(root, "b"));
  const restored = await running("b");
  expect((await restored.client.call("exists", { path: "/before", watch: false })).err).toBe(0);
  await restored.keeper.close();
});

test("a backup that fails leaves no file that could be taken for one", async () => {
  const { keeper, client } = await running("a");
  await client.call("create", node("/x", { data: new Uint8Array(100_000) }));
  await keeper.close();
  const path = join(root, "a/keeper.sqlite");
  truncateSync(path, statSync(path).size - 50_000);
  const file = join(root, "copy");
  expect(() => backUpKeeperData(join(root, "a"), file)).toThrow(/^Cannot back up .*keeper\.sqlite: /);
  expect(readdirSync(root)).toEqual(["a"]);
  expect(() => backUpKeeperData(join(root, "nowhere"), file)).toThrow(/it does not contain keeper\.sqlite/);
  expect(readdirSync(root)).toEqual(["a"]);
  expect(() => backUpKeeperData(join(root, "a"), join(root, "nowhere/copy"))).toThrow(
    /^Cannot write the backup .*: no such file or directory$/,
  );
});

test("a backup that was interrupted is no copy, and the next one to its name says why it is none", async () => {
  const { keeper, client } = await running("a");
  await client.call("create", node("/x"));
  await keeper.close();
  const [file, part] = [join(root, "copy"), join(root, "copy.part")];
  writeFileSync(part, "half");
  expect(() => backUpKeeperData(join(root, "a"), file)).toThrow(
    `Cannot write the backup ${file}: ${part} exists: another backup is running or was interrupted`,
  );
  expect([existsSync(file), existsSync(part)]).toEqual([false, true]);
  rmSync(part);
  backUpKeeperData(join(root, "a"), file);
  expect([statSync(file).mode & 0o777, existsSync(part)]).toEqual([0o600, false]);
  expect(() => backUpKeeperData(join(root, "a"), file)).toThrow(`Cannot write the backup ${file}: it already exists`);
});

test.skipIf(!canMountDisk("no backup is written to a full disk"))(
  "of a backup's disk that is full it is said that it is the backup's, and nothing is left there",
  async () => {
    const { keeper, client } = await running("a");
    await client.call("create", node("/x"));
    const folder = join(root, "disk");
    using disk = new SmallDisk(folder, 1);
    disk.fill();
    const file = join(folder, "copy");
    expect(() => backUpKeeperData(join(root, "a"), file)).toThrow(`Cannot write the backup ${file}: its disk is full`);
    expect(existsSync(file)).toBe(false);
    await keeper.close();
  },
);
