/** A disk that changes bits in the definitions of a store's tables and indexes: no store is opened with them. */
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { KeeperDatabase } from "../../../src/coordination/keeper/storage/keeper_database.ts";
import { ClientState } from "../../../src/pubsub/client/client_state.ts";
import { TopicDatabase } from "../../../src/pubsub/store/sqlite/topic_database.ts";
import { RetryDatabase } from "../../../src/retry/queue/sqlite/retry_database.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { DamagedCopies } from "../../support/damaged_copies.ts";
import { dose } from "../../support/dose.ts";
import { flipBit } from "../../support/flip_bit.ts";
import { seededRandom, testSeed } from "../../support/random.ts";

const seed = testSeed();
const flips = dose({ gate: 40, full: 2000 });
const root = mkdtempSync(join(tmpdir(), "baton-schema-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));

const stores: Record<string, (folder: string) => void | Promise<void>> = {
  keeper: (folder) => new KeeperDatabase(folder).close(),
  "topic store": (folder) => new TopicDatabase(folder).close(),
  "retry store": (folder) => new RetryDatabase(folder).close(),
  "client state": async (folder) => {
    const options = { clock: systemClock(), waitMs: 0, signal: new AbortController().signal };
    (await ClientState.open(folder, "alice", options))[Symbol.dispose]();
  },
};

function definitions(path: string): unknown {
  using database = new DatabaseSync(path, { readOnly: true });
  return database.prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name").all();
}

test.each(Object.entries(stores))(
  `a %s is not opened with damaged definitions [BATON_SEED=${seed}]`,
  async (what, open) => {
    const folder = join(root, what);
    mkdirSync(folder, { mode: 0o700 });
    await open(folder);
    const name = readdirSync(folder).find((file) => readFileSync(join(folder, file)).includes("CREATE TABLE")) ?? "";
    using copies = new DamagedCopies(name, []);
    const bytes = readFileSync(join(folder, name));
    const start = bytes.indexOf("CREATE ");
    const end = bytes.lastIndexOf("CREATE ") + 40;
    const random = seededRandom(seed);
    await open(copies.copy(folder, "same"));
    let refused = 0;
    for (let flip = 0; flip < flips; flip++) {
      const bit = 8 * start + Math.floor(random() * 8 * (end - start));
      const copy = copies.copy(folder, "flipped");
      flipBit(copies.path(copy), bit);
      const isOpened = await Promise.try(open, copy).then(() => true, () => false);
      // Bits between the rows are no part of a definition; a wrong root page is found by its rows.
      if (isOpened) expect([bit, definitions(copies.path(copy))]).toEqual([bit, definitions(copies.path(folder))]);
      refused += isOpened ? 0 : 1;
    }
    expect(refused).toBeGreaterThan(flips / 2);
  },
);
