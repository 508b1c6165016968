/**
 * A topic store on a disk that its messages fill: what was accepted can be read, acknowledged and opened again. It
 * needs root.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, readdirSync, rmSync, statfsSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { BatonError } from "../../../src/base/errors.ts";
import { backupTopicStore } from "../../../src/pubsub/store/sqlite/backup_topic_store.ts";
import { TopicStore } from "../../../src/pubsub/store/topic_store.ts";
import { verifyTopicStore } from "../../../src/pubsub/store/sqlite/verify_topic_store.ts";
import type { ClientOperation, StoreResponse } from "../../../src/pubsub/store/operations/store_operations.ts";
import { eventually } from "../../support/eventually.ts";
import { canMountDisk, SmallDisk } from "../../support/small_disk.ts";
import { requestOf, responseOf } from "../../support/store_requests.ts";

setDefaultTimeout(120_000);

const hasDisks = canMountDisk("no topic store is tried on a disk that its messages fill");
const mebibyte = 1 << 20;

let root = "";
let disk: SmallDisk | null = null;
beforeEach(() => root = mkdtempSync(join(tmpdir(), "baton-full-store-")));
afterEach(() => {
  disk?.[Symbol.dispose]();
  disk = null;
  rmSync(root, { recursive: true, force: true });
});

/** A store with one topic and one reader. */
class Client {
  static #tickets = 0;
  readonly #topic: string;
  readonly store: TopicStore;
  readonly broken: BatonError[];
  readonly #responses: Map<number, StoreResponse>;
  #counter = ++Client.#tickets * 1_000_000;

  private constructor(topic: string, store: TopicStore, responses: Map<number, StoreResponse>, broken: BatonError[]) {
    this.#topic = topic;
    this.store = store;
    this.#responses = responses;
    this.broken = broken;
  }

  static async open(folder: string, topic = "news"): Promise<Client> {
    const responses = new Map<number, StoreResponse>();
    const broken: BatonError[] = [];
    const store = await TopicStore.open(folder, {
      onResponses: (some) => {
        for (const response of some) responses.set(response.ticket, responseOf(response));
      },
      onBroken: (error) => broken.push(error),
    });
    await store.create(topic, { incarnation: "b", baseOffset: 0, epoch: 1 });
    const client = new Client(topic, store, responses, broken);
    await client.ask({ kind: "subscribe", client: "reader" });
    return client;
  }

  async ask(operation: SomeOperation): Promise<StoreResponse> {
    const ticket = ++Client.#tickets;
    const request = requestOf({ ...defaults, topic: this.#topic, ticket, ...operation } as unknown as ClientOperation);
    expect(this.store.submit(request)).toBe(true);
    return await eventually(() => this.#responses.get(ticket), { everyMs: 1, withinMs: 30_000 });
  }

  /** Puts batches, so many at the same time, until one is refused. Returns the number of the accepted ones. */
  async fill(bodies: readonly Uint8Array[], atOnce: number): Promise<number> {
    for (let accepted = 0;;) {
      const puts = Array.from({ length: atOnce }, () => {
        const counter = this.#counter;
        this.#counter += bodies.length;
        return this.ask({ kind: "put", client: "writer", counter, bodies });
      });
      const codes = (await Promise.all(puts)).map(({ code }) => code);
      accepted += codes.filter((code) => code === "OK").length;
      const refused = codes.filter((code) => code !== "OK");
      if (refused.length === 0) continue;
      expect(refused).toEqual(refused.map(() => "FULL"));
      return accepted;
    }
  }

  /** Gets and acknowledges everything. Returns the number of the messages. */
  async drain(): Promise<number> {
    for (let got = 0, last = -1;;) {
      const { code, reason, messages = [] } = await this.ask({ kind: "get", client: "reader", last, max: 1000 });
      if (code === "NO_MESSAGE") return got;
      expect({ code, reason }).toMatchObject({ code: "OK" });
      got += messages.length;
      last = messages.at(-1)?.id ?? last;
    }
  }
}

type SomeOperation = { readonly kind: string; readonly client: string; readonly [name: string]: unknown };

const defaults = {
  ...{ epoch: 1, session: null, op: null, fromSession: null, firstUnacked: 0, after: null },
  ...{ msgId: null, max: 1, maxBytes: 0, wait: false, peek: false },
};

const bodies = (count: number, bytes: number) => Array.from({ length: count }, () => new Uint8Array(bytes).fill(7));
const diskMiB = 32;
const share = (percent: number) => Math.floor(diskMiB * mebibyte * percent / 100);

test.skipIf(!hasDisks).each([
  { what: "messages of 0.1 % of the disk", bodies: bodies(1, share(0.1)), atOnce: 1, least: 400 },
  { what: "messages of 1 % of the disk", bodies: bodies(1, share(1)), atOnce: 1, least: 40 },
  { what: "messages of 5 % of the disk", bodies: bodies(1, share(5)), atOnce: 1, least: 7 },
  { what: "messages of 10 % of the disk", bodies: bodies(1, share(10)), atOnce: 1, least: 3 },
  { what: "messages of 1 % of the disk, many in one commit", bodies: bodies(1, share(1)), atOnce: 40, least: 30 },
  { what: "messages of 10 % of the disk, many in one commit", bodies: bodies(1, share(10)), atOnce: 8, least: 2 },
  { what: "batches of one-byte messages", bodies: bodies(1024, 1), atOnce: 16, least: 150 },
])("$what: filled, opened, drained and opened again", async ({ bodies, atOnce, least }) => {
  const folder = join(root, "disk");
  disk = new SmallDisk(folder, diskMiB);
  let client = await Client.open(join(folder, "s1"));
  const reopen = async () => {
    await client.store.close();
    expect(client.broken).toEqual([]);
    client = await Client.open(join(folder, "s1"));
  };
  const accepted = await client.fill(bodies, atOnce);
  expect(accepted).toBeGreaterThanOrEqual(least);
  await reopen();
  expect(await client.drain()).toBe(accepted * bodies.length);
  await reopen();
  await eventually(() => statfsSync(folder).bavail > 0.6 * statfsSync(folder).blocks, {
    withinMs: 20_000,
    what: "the unused pages to be given back",
  });
  expect(await client.fill(bodies, atOnce)).toBeGreaterThanOrEqual(least);
  await client.store.close();
  expect(client.broken).toEqual([]);
  expect(verifyTopicStore(join(folder, "s1")).problems).toEqual([]);
});

test.skipIf(!hasDisks)("another program takes the last byte: a store that is opened then is drained", async () => {
  const folder = join(root, "disk");
  disk = new SmallDisk(folder, diskMiB);
  let client = await Client.open(join(folder, "s1"));
  const message = bodies(1, share(1));
  for (let counter = 1; counter <= 20; counter++) {
    expect((await client.ask({ kind: "put", client: "alice", counter, bodies: message })).code).toBe("OK");
  }
  const sizeOf = (name: string) => statSync(join(folder, "s1", name)).size;
  await eventually(() => sizeOf("topics.sqlite-wal") >= 8 << 20 && sizeOf("topics.sqlite") >= 20 * share(1), {
    withinMs: 10_000,
    what: "the log to be in the database",
  });
  disk.fill();
  expect(await client.fill(message, 1)).toBe(0);
  await client.store.close();
  client = await Client.open(join(folder, "s1"));
  expect(await client.drain()).toBe(20);
  await client.store.close();
  expect(client.broken).toEqual([]);
});

test.skipIf(!hasDisks)(
  "a topic that does not fit is refused as a copy, and the topics that are there go on",
  async () => {
    const folder = join(root, "disk");
    disk = new SmallDisk(folder, diskMiB);
    const full = await Client.open(join(folder, "s1"));
    await full.fill(bodies(1, share(5)), 1);
    const from = await Client.open(join(root, "s2"), "other");
    const message = bodies(1, share(10));
    for (let counter = 1; counter <= 3; counter++) {
      expect((await from.ask({ kind: "put", client: "alice", counter, bodies: message })).code).toBe("OK");
    }
    const { hash, pieces } = from.store.export("other", 1, () => from.store.seal("other", 1, "s1"));
    async function* sent(): AsyncGenerator<Uint8Array, void, void> {
      for await (const piece of pieces) if (piece !== null) yield piece;
    }
    const content = { incarnation: "b", baseOffset: 0, owner: "s2", epoch: 1 };
    await expect(full.store.importStaged("other", content, { pieces: sent(), hash })).rejects.toMatchObject({
      code: "STORE_FULL",
      message: expect.stringMatching(/^Cannot receive topic "other": .* of the file system is used/),
    });
    expect((await full.store.copiesOf("other")).staged).toBeNull();
    expect(await full.drain()).toBeGreaterThan(10);
    await full.store.close();
    await from.store.close();
    expect([...full.broken, ...from.broken]).toEqual([]);
  },
);

test.skipIf(!hasDisks)("a backup that does not fit names its own disk, and leaves no copy", async () => {
  disk = new SmallDisk(join(root, "disk"), 1);
  const client = await Client.open(join(root, "s1"));
  expect((await client.ask({ kind: "put", client: "a", counter: 1, bodies: bodies(1, 2 * mebibyte) })).code).toBe("OK");
  const target = join(root, "disk/copy");
  expect(() => backupTopicStore(join(root, "s1"), target)).toThrow(
    `Cannot write the backup ${target}: its disk is full`,
  );
  expect(readdirSync(target)).toEqual([]);
  await client.store.close();
});
