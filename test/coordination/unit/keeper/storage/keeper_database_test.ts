import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KeeperDatabase } from "../../../../../src/coordination/keeper/storage/keeper_database.ts";
import { decodeKeeperRows, encodeKeeperRows } from "../../../../../src/coordination/keeper/storage/keeper_rows.ts";

/** Thousands of flushes: a busy disk takes its time. */
setDefaultTimeout(30_000);

let root = "";
beforeEach(() => root = mkdtempSync(join(tmpdir(), "baton-database-")));
afterEach(() => rmSync(root, { recursive: true, force: true }));

const owned = expect.objectContaining({ code: "LOCK_BUSY", message: expect.stringContaining("Another keeper owns") });
const folder = (name: string) => {
  mkdirSync(join(root, name));
  return join(root, name);
};
const rows = (...ids: number[]) => ids.map((id) => ({ id: BigInt(id), body: new Uint8Array(50).fill(id) }));
const gone = (id: number) => [{ id: BigInt(id), body: null }];

function loaded(database: KeeperDatabase) {
  const pieces = [...database.load()].map(decodeKeeperRows);
  return {
    zxid: pieces[0]?.zxid,
    nodes: pieces.flatMap(({ nodes }) => nodes.map(({ id }) => Number(id))),
    sessions: pieces.flatMap(({ sessions }) => sessions.map(({ id }) => Number(id))),
  };
}

test("what was committed last is what is loaded, oldest node first", () => {
  const database = new KeeperDatabase(folder("a"));
  expect(loaded(database)).toEqual({ zxid: 0n, nodes: [], sessions: [] });
  database.commit(encodeKeeperRows(7n, rows(3, 1, 2), rows(9)));
  database.commit(encodeKeeperRows(8n, gone(2), [...gone(9), ...rows(10)]));
  expect(loaded(database)).toEqual({ zxid: 8n, nodes: [1, 3], sessions: [10] });
  database.close();
});

test("a log that was extended loses nothing in a crash, before and after it is written from its start again", () => {
  const dir = folder("a");
  const database = new KeeperDatabase(dir);
  database.commit(encodeKeeperRows(1n, rows(1), []));
  database.reserveLog();
  const length = statSync(join(dir, "keeper.sqlite-wal")).size;
  expect(length).toBe(8 << 20);
  const ids = [1];
  // Enough for the log to be copied into the database and begun anew more than once.
  for (let id = 2; id < 3000; id++) {
    database.commit(encodeKeeperRows(BigInt(id), rows(id), []));
    database.checkpoint("busy");
    ids.push(id);
    if (id % 500 !== 0) continue;
    const crash = join(root, `crash-${id}`);
    cpSync(dir, crash, { recursive: true });
    const recovered = new KeeperDatabase(crash);
    expect(loaded(recovered)).toEqual({ zxid: BigInt(id), nodes: ids, sessions: [] });
    recovered.close();
  }
  expect(statSync(join(dir, "keeper.sqlite-wal")).size).toBeLessThan(2 * length);
  database.close();
});

test("a directory has one owner, until that one is gone", () => {
  const dir = folder("a");
  const owner = new KeeperDatabase(dir);
  expect(() => new KeeperDatabase(dir)).toThrow(owned);
  owner.close();
  new KeeperDatabase(dir).close();
});

test("where the file that decides was removed, the last to open the rows is the one that writes them", () => {
  const dir = folder("a");
  const older = new KeeperDatabase(dir);
  older.commit(encodeKeeperRows(1n, rows(1), []));
  older.confirmOwner();
  rmSync(join(dir, "owner.sqlite"));
  const newer = new KeeperDatabase(dir);
  expect(() => older.commit(encodeKeeperRows(2n, rows(2), []))).toThrow(owned);
  expect(() => older.confirmOwner()).toThrow(owned);
  newer.commit(encodeKeeperRows(3n, rows(3), []));
  newer.confirmOwner();
  older.close();
  newer.commit(encodeKeeperRows(4n, rows(4), []));
  expect(loaded(newer)).toEqual({ zxid: 4n, nodes: [1, 3, 4], sessions: [] });
  newer.close();
});

test("a piece that fails half-way leaves nothing", () => {
  const database = new KeeperDatabase(folder("a"));
  database.commit(encodeKeeperRows(1n, rows(1), []));
  const whole = encodeKeeperRows(2n, rows(2, 3), []);
  expect(() => database.commit(whole.subarray(0, whole.byteLength - 5))).toThrow();
  expect(loaded(database)).toEqual({ zxid: 1n, nodes: [1], sessions: [] });
  database.commit(encodeKeeperRows(3n, rows(4), []));
  expect(loaded(database).nodes).toEqual([1, 4]);
  database.close();
});
