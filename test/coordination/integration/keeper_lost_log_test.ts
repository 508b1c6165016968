/**
 * A write-ahead log that is cut off or removed after kill -9 is found out: exit 74, never a keeper without what it had
 * acknowledged.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { backUpKeeperData, verifyKeeperData } from "../../../src/coordination/keeper/storage/data_check_and_backup.ts";
import { node } from "../conformance/zookeeper_fixture.ts";
import { eventually } from "../../support/eventually.ts";
import { fourLetterWord } from "../../support/four_letter_word.ts";
import { batonCommand } from "../../support/keeper_server.ts";
import { RawClient } from "../../support/raw_client.ts";
import { ServerProcess } from "../../support/server_process.ts";

setDefaultTimeout(60_000);

let root = "";
let keepers: ServerProcess[] = [];
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "baton-log-"));
  keepers = [];
});
afterEach(async () => {
  for (const keeper of keepers) await keeper.kill();
  rmSync(root, { recursive: true, force: true });
});

const address = () => ({ kind: "unix" as const, path: join(root, "k.sock") });
const data = (name: string) => join(root, "data", name);
const log = () => data("keeper.sqlite-wal");

/** Serves, or has ended. */
async function start(): Promise<ServerProcess> {
  const words = ["keeper", "--data-dir", join(root, "data"), "--listen", `unix:${address().path}`];
  const keeper = new ServerProcess([...batonCommand(), ...words], { folder: root });
  keepers.push(keeper);
  const serves = async () => !keeper.alive || await fourLetterWord(address(), "ruok", 500) === "imok";
  await eventually(serves, { withinMs: 20_000, what: "the keeper to serve, or to end" });
  return keeper;
}

async function create(...paths: string[]): Promise<void> {
  const client = await RawClient.connect(address());
  for (const path of paths) expect((await client.call("create", node(path))).err).toBe(0);
  await client.drop();
}

async function there(...paths: string[]): Promise<number[]> {
  const client = await RawClient.connect(address());
  const found = [];
  for (const path of paths) found.push((await client.call("exists", { path, watch: false })).err);
  await client.drop();
  return found;
}

/** The end of what was written; behind it the log is reserved, as soon as the keeper is idle. */
const writtenBytes = () => readFileSync(log()).findLastIndex((byte) => byte !== 0) + 1;

const losses: [string, () => void][] = [
  ["truncated to 0 bytes", () => truncateSync(log(), 0)],
  ["truncated to 32 bytes", () => truncateSync(log(), 32)],
  ["truncated by a half", () => truncateSync(log(), writtenBytes() >> 1)],
  ["truncated by a byte", () => truncateSync(log(), writtenBytes() - 1)],
  ["removed", () => rmSync(log())],
  ["removed with its index", () => ["-wal", "-shm"].forEach((end) => rmSync(data(`keeper.sqlite${end}`)))],
  ["truncated, its index removed", () => {
    rmSync(data("keeper.sqlite-shm"));
    truncateSync(log(), 32 + 24 + 4096);
  }],
];

for (const isFirst of [true, false]) {
  test.each(losses)(
    `a log that was %s is 74 ${isFirst ? "in a new directory" : "after a clean end before"}`,
    async (_, lose) => {
      const first = await start();
      await create("/a", "/b");
      let keeper = first;
      if (!isFirst) {
        first.signal("SIGTERM");
        await eventually(() => !first.alive, { withinMs: 10_000 });
        keeper = await start();
        await create("/c");
      }
      await keeper.kill();
      lose();
      const names = statSync(data("keeper.sqlite")).size;
      for (const _ of [1, 2]) { // and again: the refusal leaves everything as it is
        const refused = await start();
        expect([refused.alive, refused.exitCode]).toEqual([false, 74]);
        expect(refused.output).toMatch(/log (was truncated|is damaged)/);
      }
      expect(statSync(data("keeper.sqlite")).size).toBe(names);
      expect(() => verifyKeeperData(join(root, "data"))).toThrow(/log (was truncated|is damaged)/);
      expect(() => backUpKeeperData(join(root, "data"), join(root, "copy"))).toThrow(/log (was truncated|is damaged)/);
      expect(existsSync(join(root, "copy"))).toBe(false);
    },
  );
}

test("a log that has lost only what was reserved behind its content has lost nothing", async () => {
  const keeper = await start();
  await create("/a", "/b");
  await eventually(() => statSync(log()).size > 4 * writtenBytes(), { what: "the log to be reserved" });
  await keeper.kill();
  truncateSync(log(), statSync(log()).size >> 1);
  verifyKeeperData(join(root, "data"));
  expect((await start()).alive).toBe(true);
  expect(await there("/a", "/b")).toEqual([0, 0]);
});

test("what was copied into the database by another program, before it removed the log, is not missed", async () => {
  const keeper = await start();
  await create("/a", "/b");
  await keeper.kill();
  const other = new DatabaseSync(data("keeper.sqlite"));
  other.exec("SELECT count(*) FROM nodes");
  other.close();
  expect(existsSync(log())).toBe(false);
  verifyKeeperData(join(root, "data"));
  expect((await start()).alive).toBe(true);
  expect(await there("/a", "/b")).toEqual([0, 0]);
});

test("a stopped keeper's folder, or its database alone, may be copied and put back over later data", async () => {
  const first = await start();
  await create("/a");
  first.signal("SIGTERM");
  await eventually(() => !first.alive, { withinMs: 10_000 });
  cpSync(join(root, "data"), join(root, "copy"), { recursive: true });
  const second = await start();
  await create("/b");
  second.signal("SIGTERM");
  await eventually(() => !second.alive, { withinMs: 10_000 });
  cpSync(join(root, "copy/keeper.sqlite"), data("keeper.sqlite"));
  expect((await start()).alive).toBe(true);
  expect(await there("/a", "/b")).toEqual([0, -101]);
});

test("a backup may be put in the place of what was lost with its log; from then on its own log is missed", async () => {
  const first = await start();
  await create("/a");
  backUpKeeperData(join(root, "data"), join(root, "backup"));
  await create("/b");
  await first.kill();
  cpSync(join(root, "backup"), data("keeper.sqlite"));
  // The log of what was there before must not get into it.
  const refused = await start();
  expect([refused.exitCode, refused.output]).toEqual([
    74,
    expect.stringContaining("remove the files that end in -wal and -shm"),
  ]);
  for (const end of ["-wal", "-shm"]) rmSync(data(`keeper.sqlite${end}`));
  verifyKeeperData(join(root, "data"));
  const second = await start();
  expect(second.alive).toBe(true);
  expect(await there("/a", "/b")).toEqual([0, -101]);
  await create("/c");
  await second.kill();
  rmSync(log());
  const third = await start();
  expect([third.alive, third.exitCode]).toEqual([false, 74]);
});

test("an older database is refused after kill -9, unless somebody says that it is meant", async () => {
  const first = await start();
  await create("/a");
  first.signal("SIGTERM");
  await eventually(() => !first.alive, { withinMs: 10_000 });
  cpSync(data("keeper.sqlite"), join(root, "older"));
  const second = await start();
  await create("/b");
  await second.kill();
  for (const end of ["-wal", "-shm"]) rmSync(data(`keeper.sqlite${end}`));
  cpSync(join(root, "older"), data("keeper.sqlite"));
  const refused = await start();
  expect([refused.exitCode, refused.output]).toEqual([74, expect.stringContaining("remove stored.zxid")]);
  rmSync(data("stored.zxid"));
  expect((await start()).alive).toBe(true);
  expect(await there("/a", "/b")).toEqual([0, -101]);
});
