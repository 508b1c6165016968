/** What a store keeps in memory of rows it has read: limited, however many there are. */
import { expect, test } from "bun:test";
import { crc32 } from "node:zlib";
import { messageRowChecksum } from "../../../../../src/pubsub/store/postgres/batch_statement.ts";
import { LoadedLogRowHeads, LoadedTopicRows } from "../../../../../src/pubsub/store/postgres/loaded_rows.ts";
import { PostgresRowLoader } from "../../../../../src/pubsub/store/postgres/postgres_row_loader.ts";
import { LogRowCache } from "../../../../../src/pubsub/store/rows/row_cache.ts";
import { DataNotLoadedError } from "../../../../../src/pubsub/store/rows/loaded_data.ts";
import type { LogRowHead, MissingTopicData } from "../../../../../src/pubsub/store/rows/topic_rows.ts";

const headsFrom = (first: number, count: number): LogRowHead[] =>
  Array.from({ length: count }, (_, at) => {
    const id = first + at;
    return { id, first: id, last: id, previous: id - 1, bytes: 100 };
  });

test("the cache of rows counts what a small row needs beside its records", () => {
  const cache = new LogRowCache<number>(100 * (512 + 1));
  for (let id = 0; id < 1000; id++) {
    cache.set(id, { id, first: id, last: id, records: new Uint8Array(1), offsets: [0] });
  }
  const kept = Array.from({ length: 1000 }, (_, id) => id).filter((id) => cache.get(id) !== undefined);
  expect(kept).toEqual(Array.from({ length: 100 }, (_, at) => 900 + at));
});

test("places of rows are remembered up to a number for all topics, and the oldest ones go first", () => {
  const runs = new LoadedLogRowHeads(1000);
  for (let topic = 1; topic <= 50; topic++) {
    for (let first = 1; first <= 401; first += 100) runs.add(topic, headsFrom(first, 100));
    expect(runs.count).toBeLessThanOrEqual(1000);
  }
  expect(runs.find(50, 450)?.first).toBe(450);
  expect(runs.find(49, 1)?.first).toBe(1);
  expect(runs.find(48, 450)).toBeUndefined();
  runs.add(49, headsFrom(501, 100));
  expect([runs.find(50, 1), runs.find(50, 450)?.first, runs.find(49, 600)?.first]).toEqual([undefined, 450, 600]);
});

test("a topic's places are those of its 32 newest runs, without deleted rows", () => {
  const runs = new LoadedLogRowHeads();
  for (let run = 0; run < 40; run++) runs.add(1, headsFrom(run * 10, 10));
  expect([runs.find(1, 79), runs.find(1, 80)?.first]).toEqual([undefined, 80]);
  for (let id = 80; id < 399; id++) runs.remove(1, id);
  expect([runs.count, runs.find(1, 398), runs.find(1, 399)?.first]).toEqual([1, undefined, 399]);
  runs.remove(1, 399);
  expect(runs.count).toBe(0);
});

test("what an opening of a topic has asked for is not given to a later one, whenever it comes", async () => {
  const loaded = new LoadedTopicRows();
  const head = { id: 5, first: 5, last: 5, previous: 4, bytes: 0 };
  const records = Buffer.alloc(0);
  const content_sum = crc32(records);
  const row = { ...head, records, content_sum, sum: messageRowChecksum(1, head, content_sum) };
  const loader = new PostgresRowLoader(() => Promise.resolve([row]), loaded, () => {});
  const lackOf = (read: () => unknown): MissingTopicData => {
    try {
      read();
    } catch (thrown) {
      if (thrown instanceof DataNotLoadedError) return thrown.lack;
      throw thrown;
    }
    throw new Error("nothing is missing");
  };
  const earlier = loaded.messagesOf(1, "t");
  const later = loaded.messagesOf(1, "t");
  const asked = lackOf(() => earlier.findRowUpTo(5));
  await loader.load(asked);
  expect(earlier.findRowUpTo(5)).toMatchObject(head);
  expect(lackOf(() => later.findRowUpTo(5))).toMatchObject({ kind: "findRowUpTo", topicId: 1, id: 5 });
});
