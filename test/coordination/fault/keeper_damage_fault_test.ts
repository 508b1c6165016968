/**
 * Bits that flip in a keeper's files while nobody uses them: verify finds each of them, or a keeper that starts from
 * the files has all that it had. `BATON_DOSE=full` flips some ten thousand.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { verifyKeeperData } from "../../../src/coordination/keeper/storage/data_check_and_backup.ts";
import { KeeperDatabase } from "../../../src/coordination/keeper/storage/keeper_database.ts";
import { startKeeper } from "../../../src/coordination/keeper/lifecycle/start_keeper.ts";
import {
  decodeKeeperNode,
  decodeKeeperRows,
  decodeKeeperSession,
} from "../../../src/coordination/keeper/storage/keeper_rows.ts";
import { aclPermission, createFlag } from "../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { node } from "../conformance/zookeeper_fixture.ts";
import { dose } from "../../support/dose.ts";
import { seededRandom, testSeed } from "../../support/random.ts";
import { RawClient } from "../../support/raw_client.ts";

setDefaultTimeout(1_200_000);

const seed = testSeed();
const random = seededRandom(seed);
const below = (limit: number) => Math.floor(random() * limit);

let root = "";
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "baton-damage-"));
  await fill();
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

/**
 * `closed`: a keeper that ended in order; `killed`: one that had gone on from there when it was killed; `off`: the same
 * without the log's index, which a failure of the power takes with it.
 */
async function fill(): Promise<void> {
  const dataDir = join(root, "data");
  const address = { kind: "unix" as const, path: join(root, "k.sock") };
  const start = () => startKeeper({ dataDir, listen: [address] });
  const acl = [{ perms: aclPermission.read, id: { scheme: "digest", id: "x:y" } }];
  const first = await start();
  const client = await RawClient.connect(address, { timeoutMs: 60_000 });
  const create = (path: string, more: object = {}) => client.call("create", node(path, more));
  for (let index = 0; index < 60; index++) {
    await create(`/n-${index}`, { data: new Uint8Array(index * 40).fill(index) });
  }
  for (let index = 0; index < 30; index++) await client.call("delete", { path: `/n-${index * 2}`, version: -1 });
  await create("/closed", { acl });
  await first.close();
  cpSync(dataDir, join(root, "closed"), { recursive: true });
  const second = await start();
  const later = await RawClient.connect(address, client.hello as object);
  for (let index = 0; index < 20; index++) {
    await later.call("create", node("/e-", { flags: createFlag.ephemeralSequential, data: new Uint8Array(300) }));
  }
  await later.call("setData", { path: "/n-1", data: new Uint8Array(9000).fill(1), version: -1 });
  await later.call("create", node("/last"));
  cpSync(dataDir, join(root, "killed"), { recursive: true });
  cpSync(dataDir, join(root, "off"), { recursive: true });
  rmSync(join(root, "off/keeper.sqlite-shm"));
  await second.close();
}

/** All that a keeper would start with. Throws when it would not start. */
function contentOf(dataDir: string): unknown {
  const database = new KeeperDatabase(dataDir);
  try {
    const pieces = [...database.load()].map((bytes) => decodeKeeperRows(bytes));
    const nodes = pieces.flatMap((piece) => piece.nodes.map((row) => decodeKeeperNode(row)));
    return {
      zxid: pieces[0]?.zxid,
      nodes,
      sessions: pieces.flatMap((piece) => piece.sessions.map(decodeKeeperSession)),
    };
  } finally {
    database.close();
  }
}

function flip(path: string, bit: number): void {
  const bytes = readFileSync(path);
  const at = bit >> 3;
  bytes[at] = (bytes[at] ?? 0) ^ 1 << (bit & 7);
  writeFileSync(path, bytes);
}

function isFound(dataDir: string): boolean {
  try {
    verifyKeeperData(dataDir);
    return false;
  } catch {
    return true;
  }
}

/**
 * Where the last commits of a log begin that nothing goes on from so that a flipped bit could be told from a write cut
 * short.
 */
function lastCommitsAt(log: Uint8Array): number {
  const view = new DataView(log.buffer, log.byteOffset);
  const ends: number[] = [];
  for (let at = 32; at < log.byteLength && view.getUint32(at) !== 0; at += 24 + 4096) {
    if (view.getUint32(at + 4) !== 0) ends.push(at + 24 + 4096);
  }
  return ends.at(-3) ?? 0;
}

for (const state of ["closed", "killed", "off"]) {
  test(`a bit that flips in the files of a keeper that was ${state} is found, or harmless [BATON_SEED=${seed}]`, () => {
    const trial = join(root, "trial");
    const copied = (): string => {
      rmSync(trial, { recursive: true, force: true });
      cpSync(join(root, state), trial, { recursive: true });
      return trial;
    };
    const whole = contentOf(copied());
    expect(isFound(copied())).toBe(false);
    const tally: Record<string, { found: number; harmless: number; last: number }> = {};
    const missed: string[] = [];
    for (const name of readdirSync(join(root, state)).sort()) {
      const counts = tally[name] = { found: 0, harmless: 0, last: 0 };
      // What was kept free of the disk at a log's end is zeros.
      const bytes = readFileSync(join(root, state, name));
      const length = bytes.findLastIndex((byte) => byte !== 0) + 1;
      const lastAt = state === "off" && name.endsWith("-wal") ? lastCommitsAt(bytes) : Infinity;
      for (let count = 0; length > 0 && count < dose({ gate: 30, full: 10_000 }); count++) {
        const bit = below(length * 8);
        flip(join(copied(), name), bit);
        if (isFound(trial)) {
          counts.found++;
          continue;
        }
        flip(join(copied(), name), bit);
        let content: unknown;
        try {
          content = contentOf(trial);
        } catch (error) {
          missed.push(`${name} bit ${bit & 7} of byte ${bit >> 3}: verify finds nothing, a keeper says ${error}`);
          continue;
        }
        if (Bun.deepEquals(content, whole)) counts.harmless++;
        else if (bit >> 3 >= lastAt) counts.last++;
        else missed.push(`${name} bit ${bit & 7} of byte ${bit >> 3}: nobody finds it, and something else is served`);
      }
    }
    console.log(JSON.stringify(tally));
    expect(missed).toEqual([]);
  });
}
