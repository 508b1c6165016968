/**
 * Two keepers on one data directory, as it comes about when somebody removes the file that decides between them: the
 * older one acknowledges nothing from then on, and answers nobody for so long that a lease could outlast its session.
 */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type Keeper, startKeeper } from "../../../src/coordination/keeper/lifecycle/start_keeper.ts";
import { type KeeperOptions } from "../../../src/coordination/keeper/lifecycle/keeper_server.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { resultInTimeOrNull } from "../../../src/base/support/deadline.ts";
import { zxidMarkFileName } from "../../../src/coordination/keeper/storage/keeper_rows.ts";
import { createFlag } from "../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { node } from "../conformance/zookeeper_fixture.ts";
import { eventually } from "../../support/eventually.ts";
import { FakeClock } from "../../support/fake_clock.ts";
import { RawClient } from "../../support/raw_client.ts";

let root = "";
let keepers: Keeper[] = [];
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "baton-ownership-"));
  keepers = [];
});
afterEach(async () => {
  for (const keeper of keepers) await keeper.close();
  rmSync(root, { recursive: true, force: true });
});

const data = (name: string) => join(root, "data", name);

async function start(name: string, options: Partial<KeeperOptions> = {}) {
  const address = { kind: "unix" as const, path: join(root, `${name}.sock`) };
  const said: string[] = [];
  const keeper = await startKeeper({
    dataDir: join(root, "data"),
    listen: [address],
    log: (sentence) => said.push(sentence),
    ...options,
  });
  keepers.push(keeper);
  const end = keeper.ended.then(() => "it ended", (error) => error);
  return { keeper, said, end, connect: () => RawClient.connect(address) };
}

test("a write that reaches the older one after the newer has read the data is not done, and it ends", async () => {
  // Its hands do not move: what it has looked at stays fresh, so that only the store can tell.
  const older = await start("older", { clock: new FakeClock() });
  const client = await older.connect();
  expect((await client.call("create", node("/before"))).err).toBe(0);
  rmSync(data("owner.sqlite"));
  const newer = await start("newer");
  const refused = await client.call("create", node("/after")).then(() => "done", () => "refused");
  expect(refused).toBe("refused");
  expect(await older.end).toMatchObject({ code: "LOCK_BUSY" });
  expect(older.said.join()).toContain("Another keeper owns the data directory");

  const other = await newer.connect();
  expect((await other.call("exists", { path: "/before", watch: false })).err).toBe(0);
  expect((await other.call("create", node("/after", { flags: createFlag.ephemeral }))).err).toBe(0);
});

test("the older keeper does not answer a ping 100 ms after its last check, even if it was stopped", async () => {
  const clock = new FakeClock();
  const older = await start("older", { clock });
  const client = await older.connect();
  expect((await client.ping()).err).toBe(0);
  rmSync(data("owner.sqlite"));
  await start("newer");
  clock.stall(100);
  expect(await client.ping().then(() => "answered", () => "closed")).toBe("closed");
  expect(await older.end).toMatchObject({ code: "IO" });
});

test("the older keeper answers nobody for half a second more, the least by which leases end earlier", async () => {
  const older = await start("older");
  const client = await older.connect();
  await client.ping();
  rmSync(data("owner.sqlite"));
  await start("newer");
  const startedMs = performance.now();
  let lastAnsweredMs = 0;
  await eventually(async () => {
    if (client.isClosed) return true; // by the keeper's own look, between two pings
    const sentMs = performance.now();
    if (await client.ping().then(() => true, () => false)) lastAnsweredMs = sentMs;
    return false;
  }, { what: "the older one to answer no more" });
  expect(lastAnsweredMs).toBeLessThan(startedMs + 500);
});

test("rows that name another keeper end this one, even if no file was touched", async () => {
  const older = await start("older");
  const client = await older.connect();
  const other = new DatabaseSync(data("keeper.sqlite"));
  other.exec("UPDATE owner SET keeper = 'another'");
  other.close();
  await client.closed;
  expect(await older.end).toMatchObject({ code: "LOCK_BUSY" });
});

test("sessions and locks survive the end: the next keeper goes on with them", async () => {
  const older = await start("older");
  const client = await older.connect();
  await client.call("create", node("/held", { flags: createFlag.ephemeral }));
  const { sessionId, passwd } = client.hello;
  rmSync(data("owner.sqlite"));
  await client.closed;
  await older.end;
  const newer = await start("newer");
  const resumed = await RawClient.connect({ kind: "unix", path: join(root, "newer.sock") }, {
    sessionId,
    passwd: passwd ?? new Uint8Array(),
  });
  expect(resumed.sessionId).toBe(sessionId);
  expect((await resumed.call("exists", { path: "/held", watch: false })).err).toBe(0);
  expect(newer.said).toEqual([]);
});

test("a keeper waits for a program that locks the data for a moment, as the last to close it does", async () => {
  const first = await start("first");
  await (await first.connect()).call("create", node("/before"));
  const mark = readFileSync(data(zxidMarkFileName));
  await first.keeper.close();
  writeFileSync(data(zxidMarkFileName), mark); // as if the first one had been killed: the rows are compared with it
  const other = new DatabaseSync(data("keeper.sqlite"));
  other.exec("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; DELETE FROM sessions; COMMIT");
  const starting = start("second");
  const early = await resultInTimeOrNull(systemClock(), 300, starting);
  other.close();
  expect(early).toBeNull();
  const second = await starting;
  expect((await (await second.connect()).call("exists", { path: "/before", watch: false })).err).toBe(0);
});
