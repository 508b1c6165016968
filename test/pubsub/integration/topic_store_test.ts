import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, statSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { BatonError } from "../../../src/base/errors.ts";
import { backupTopicStore } from "../../../src/pubsub/store/sqlite/backup_topic_store.ts";
import { operationsInFlightMax, threadBatchOperations } from "../../../src/pubsub/store/limits/topic_store_limits.ts";
import { TopicStore } from "../../../src/pubsub/store/topic_store.ts";
import { openTopicStoreToRead } from "../../../src/pubsub/store/sqlite/topic_database.ts";
import { verifyTopicStore } from "../../../src/pubsub/store/sqlite/verify_topic_store.ts";
import type { OwnedStore } from "../../../src/pubsub/store/operations/owned_store.ts";
import type { ClientOperation, StoreResponse } from "../../../src/pubsub/store/operations/store_operations.ts";
import { bytesBelow } from "../../support/bytes_below.ts";
import { dose } from "../../support/dose.ts";
import { eventually } from "../../support/eventually.ts";
import { seededRandom, testSeed } from "../../support/random.ts";
import { requestOf, responseOf } from "../../support/store_requests.ts";

setDefaultTimeout(120_000);

let root = "";
beforeEach(() => root = mkdtempSync(join(tmpdir(), "baton-topic-store-")));
afterEach(() => rmSync(root, { recursive: true, force: true }));

const bun = realpathSync(join(import.meta.dir, "../../../node_modules/.bin/bun"));
const program = join(import.meta.dir, "../../support/topic_store_program.ts");

/** A store, and everything it has answered. */
async function open(dir: string, options = {}) {
  const responses: StoreResponse[] = [];
  const broken: BatonError[] = [];
  const store = await TopicStore.open(dir, {
    onResponses: (some) => responses.push(...some.map(responseOf)),
    onBroken: (error) => broken.push(error),
  }, options);
  const submit = (operation: ClientOperation) => store.submit(requestOf(operation));
  const ask = async (operation: ClientOperation) => {
    expect(submit(operation)).toBe(true);
    return await eventually(() => responses.find(({ ticket }) => ticket === operation.ticket), { everyMs: 1 });
  };
  return { store, responses, broken, ask, submit };
}

const at = { topic: "news", epoch: 1, session: null };
const put = (ticket: number, counter: number, body: string | Uint8Array = `body ${counter}`): ClientOperation => ({
  kind: "put",
  ticket,
  ...at,
  client: "writer",
  counter,
  fromSession: null,
  firstUnacked: 0,
  after: null,
  msgId: null,
  bodies: [typeof body === "string" ? new TextEncoder().encode(body) : body],
});
const get = (ticket: number, last: number, more: Partial<ClientOperation & { kind: "get" }> = {}): ClientOperation => ({
  kind: "get",
  ticket,
  ...at,
  client: "reader",
  op: null,
  last,
  max: 1,
  maxBytes: 0,
  wait: false,
  peek: false,
  ...more,
});
const subscribe: ClientOperation = { kind: "subscribe", ticket: 1, ...at, client: "reader", op: null };
const incarnation = { incarnation: "b", baseOffset: 0, epoch: 1 };

async function* withoutPauses(pieces: AsyncIterable<Uint8Array | null>): AsyncGenerator<Uint8Array, void, void> {
  for await (const piece of pieces) if (piece !== null) yield piece;
}

test("what ownership asks of a store is what this one does", async () => {
  const { store } = await open(join(root, "a"));
  const owned: OwnedStore = store;
  await owned.create("news", incarnation);
  const { hash, pieces } = owned.export("news", 1, () => owned.seal("news", 1, "s2"));
  const other = await open(join(root, "b"));
  const content = { incarnation: "b", baseOffset: 0, owner: "s1", epoch: 1 };
  await (other.store as OwnedStore).importStaged("news", content, { pieces: withoutPauses(pieces), hash });
  await (other.store as OwnedStore).activate("news", 2, "staged", "b");
  expect(await other.store.copiesOf("news")).toMatchObject({ copy: { epoch: 2, sealedFor: null }, staged: null });
  expect(await owned.topics()).toEqual(["news"]);
  expect(owned.storeId).not.toBe(other.store.storeId);
  await store.close();
  await other.store.close();
});

test("everything that arrived while a commit ran is one transaction", async () => {
  const { store, responses, ask, submit } = await open(join(root, "a"));
  await store.create("news", incarnation);
  await ask(subscribe);
  const { commits } = await store.statistics();
  for (let counter = 1; counter <= 1000; counter++) submit(put(counter + 1, counter));
  await eventually(() => responses.length === 1001);
  expect((await store.statistics()).commits - commits).toBeLessThanOrEqual(3);
  await store.close();
});

test("a message and the acknowledgement of the one before it share a flush", async () => {
  const { store, responses, ask, submit } = await open(join(root, "a"));
  await store.create("news", incarnation);
  await ask(subscribe);
  const { commits } = await store.statistics();
  for (let counter = 1; counter <= 50; counter++) {
    submit(get(1000 + counter, counter === 1 ? -1 : counter - 1, { wait: true }));
    submit(put(2000 + counter, counter));
    await eventually(() => responses.filter(({ ticket }) => ticket > 1000 && ticket % 1000 === counter).length === 2, {
      everyMs: 0,
    });
  }
  // Where the machine stalls between two, the acknowledgement is written by itself.
  expect((await store.statistics()).commits - commits).toBeLessThanOrEqual(75);
  await store.close();
});

test("what is submitted while a batch is worked on goes into its transaction", async () => {
  const { store, ask, responses, submit } = await open(join(root, "a"));
  await store.create("news", incarnation);
  await ask(subscribe);
  const commitsOf = async (first: number): Promise<number> => {
    const { commits } = await store.statistics();
    const bodies = Array.from({ length: 500 }, () => new Uint8Array(8));
    submit({ ...put(first, first), bodies } as ClientOperation);
    await Promise.resolve(); // it is on its way
    const last = first + bodies.length;
    submit(put(last, last));
    await eventually(() => responses.some(({ ticket }) => ticket === last));
    return (await store.statistics()).commits - commits;
  };
  const commits: number[] = [];
  for (let first = 1000; first < 11_000; first += 1000) commits.push(await commitsOf(first));
  // Whoever comes too late, because this process had to wait, is in the next.
  expect(Math.min(...commits)).toBe(1);
  expect(Math.max(...commits)).toBeLessThanOrEqual(2);
  await store.close();
});

test("what is stored is for its owner only, in whatever folder it is", async () => {
  const folder = join(root, "a");
  mkdirSync(folder, { mode: 0o755 });
  const { store } = await open(folder);
  await store.create("news", incarnation);
  for (const name of readdirSync(folder)) expect([name, statSync(join(folder, name)).mode & 0o077]).toEqual([name, 0]);
  await store.close();
});

test("much that is submitted in one turn is worked on before the turn is over", async () => {
  const { store, ask, submit } = await open(join(root, "a"));
  await store.create("news", incarnation);
  await ask(subscribe);
  using rows = openTopicStoreToRead(join(root, "a"));
  const stored = rows.prepare("SELECT count(*) AS count FROM messages");
  for (let counter = 1; counter <= threadBatchOperations; counter++) submit(put(1000 + counter, counter));
  const endMs = performance.now() + 10_000;
  let count = 0;
  while (count === 0 && performance.now() < endMs) count = Number(stored.get()?.["count"]);
  expect(count).toBe(1);
  await store.close();
});

test("a body of any bytes comes back as it was, a large one too", async () => {
  const { store, ask } = await open(join(root, "a"));
  await store.create("news", incarnation);
  await ask(subscribe);
  const bodies = [
    new Uint8Array(0),
    Uint8Array.from({ length: 256 }, (_, byte) => byte),
    new Uint8Array(3 << 20).fill(7),
  ];
  for (const [index, body] of bodies.entries()) await ask(put(10 + index, index + 1, body));
  const { messages } = await ask(get(20, -1, { max: 9, maxBytes: 8 << 20 }));
  expect(messages?.map(({ body }) => Buffer.compare(body, bodies[0] as Uint8Array) === 0 ? 0 : body.byteLength))
    .toEqual([0, 256, 3 << 20]);
  expect(messages?.[1]?.body).toEqual(bodies[1] as Uint8Array);
  // Without room for more than one, one comes all the same.
  expect((await ask(get(21, 1, { max: 9, maxBytes: 1 }))).messages).toHaveLength(1);
  await store.close();
});

test("room on the disk that a burst took is given back when everybody has had it", async () => {
  const { store, ask } = await open(root);
  await store.create("news", incarnation);
  await ask(subscribe);
  for (const counter of [1, 2]) await ask(put(counter + 1, counter, new Uint8Array(20 << 20).fill(counter)));
  expect(bytesBelow(root)).toBeGreaterThan(40 << 20);
  await ask(get(5, 2));
  await eventually(() => bytesBelow(root) < 10 << 20, { withinMs: 30_000, everyMs: 20, what: "the files to be short" });
  await store.close();
});

test("messages that are too old go also while others are put all the time", async () => {
  const { store, ask } = await open(root, { retainMs: 500 });
  for (const topic of ["news", "busy"]) {
    await store.create(topic, incarnation);
    await ask({ ...subscribe, ticket: topic.length, topic });
  }
  await ask(put(100, 1));
  const bytes = async () => (await store.show("news", 1)).bytes;
  expect(await bytes()).toBeGreaterThan(0);
  let counter = 1;
  await eventually(async () => {
    await ask({ ...put(200 + counter, counter++), topic: "busy" } as ClientOperation);
    return await bytes() === 0;
  }, { withinMs: 15_000, everyMs: 1, what: "the old message to be gone" });
  await store.close();
});

test("a topic with a long message moves in pieces that carry nothing but themselves", async () => {
  const { store, ask } = await open(join(root, "a"));
  await store.create("news", incarnation);
  await ask(subscribe);
  const body = crypto.getRandomValues(new Uint8Array(65_536));
  const long = Uint8Array.from({ length: 10 << 20 }, (_, at) => body[(at * 7919) & 0xffff] as number);
  await ask(put(2, 1, long));
  await ask(put(3, 2, "short"));
  const { hash, pieces } = store.export("news", 1, () => store.seal("news", 1, "s2"));
  const other = await open(join(root, "b"));
  let count = 0;
  const counted = async function* () {
    for await (const piece of withoutPauses(pieces)) {
      count++;
      // A buffer of its own: between threads all of a buffer is copied, however little of it a view shows.
      expect(piece.buffer.byteLength).toBe(piece.byteLength);
      // As it comes from a socket: in a buffer with other things.
      const among = new Uint8Array(piece.byteLength + 100);
      among.set(piece, 50);
      yield among.subarray(50, 50 + piece.byteLength);
    }
  };
  await other.store.importStaged("news", { incarnation: "b", baseOffset: 0, owner: "s1", epoch: 1 }, {
    pieces: counted(),
    hash,
  });
  expect(count).toBeGreaterThan(9);
  await other.store.activate("news", 2, "staged");
  const moved = await other.ask(get(1, -1, { epoch: 2, max: 2, maxBytes: 16 << 20 }));
  expect(Buffer.compare(moved.messages?.[0]?.body ?? Buffer.alloc(0), long)).toBe(0);
  expect(moved.messages?.[1]?.body).toEqual(new TextEncoder().encode("short"));
  await store.close();
  await other.store.close();
});

test("too much under way is pushed back, and taken again later", async () => {
  const { store, responses, submit } = await open(join(root, "a"));
  await store.create("news", incarnation);
  let taken = 0;
  while (submit(put(taken, taken + 1))) taken++;
  expect(taken).toBe(operationsInFlightMax);
  await eventually(() => responses.length === taken, { withinMs: 30_000 });
  for (let more = taken; more < 2 * taken; more++) expect(submit(put(more, more + 1))).toBe(true);
  await store.close();
});

test("a proxy with a later epoch must look again, as one with an unreadable request; nothing is stored", async () => {
  const { store, responses } = await open(join(root, "a"), { server: "s1" });
  await store.create("news", incarnation);
  const submit = (ticket: number, header: string) => {
    const frames = [new TextEncoder().encode(`PUT bob news 7\r\n${header}\r\n\r\nx`)];
    expect(store.submit({ ticket, epoch: 1, frames, wait: false, bytes: 1 })).toBe(true);
  };
  submit(1, "epoch: 2");
  submit(2, "epoch: first");
  await eventually(() => responses.length === 2);
  expect(responses.map(({ ticket, code, ids }) => [ticket, code, ids])).toEqual([[1, "NOT_OWNER", []], [
    2,
    "BAD_REQUEST",
    [],
  ]]);
  expect(responses[0]?.reason).toBe('topic "news" is at epoch 1 here; the request is for epoch 2');
  expect((await store.show("news", 1)).end).toBe(0);
  submit(3, "epoch: 0");
  await eventually(() => responses.length === 3);
  expect(responses[2]).toMatchObject({ code: "OK", ids: [{ first: 1, last: 1 }] });
  await store.close();
});

test("a move of a cursor that nobody waits for is durable soon all the same", async () => {
  const { store, ask } = await open(join(root, "a"));
  await store.create("news", incarnation);
  await ask(subscribe);
  await ask(put(2, 1));
  const { commits } = await store.statistics();
  expect((await ask(get(3, 1))).code).toBe("NO_MESSAGE");
  await eventually(async () => (await store.statistics()).commits > commits);
  await store.close();
});

describe("a data directory", () => {
  test("has one owner", async () => {
    const { store } = await open(join(root, "a"));
    await expect(open(join(root, "a"))).rejects.toMatchObject({ code: "LOCK_BUSY" });
    await store.close();
    await (await open(join(root, "a"))).store.close();
  });

  test("of a newer format is refused with a sentence, and left as it is", async () => {
    const { store } = await open(join(root, "a"));
    await store.close();
    const database = new DatabaseSync(join(root, "a/topics.sqlite"));
    database.exec("PRAGMA user_version = 99");
    database.close();
    await expect(open(join(root, "a"))).rejects.toMatchObject({
      code: "CONFIG",
      message: `The topic store in ${
        join(root, "a")
      } was written by a newer version (format 99); this version of baton reads format 4: use the newer version`,
    });
  });

  test("that another one has opened since is not written any more, and nobody is answered", async () => {
    const { store, broken, responses, submit } = await open(join(root, "a"));
    await store.create("news", incarnation);
    rmSync(join(root, "a/owner.sqlite"));
    const second = await open(join(root, "a"));
    submit(put(5, 1));
    await eventually(() => broken.length === 1);
    expect(broken[0]).toMatchObject({ code: "LOCK_BUSY" });
    expect(responses).toEqual([]);
    expect(() => submit(put(6, 2))).toThrow("Another server has opened");
    await store.close();
    expect(await second.store.topics()).toEqual(["news"]);
    expect((await second.store.show("news", 1)).end).toBe(0);
    await second.store.close();
  });
});

test("a backup of a store in use can be opened and is whole; verify finds what is damaged", async () => {
  const { store, ask } = await open(join(root, "a"));
  await store.create("news", incarnation);
  await ask(subscribe);
  await ask({ ...subscribe, ticket: 0, client: "late" });
  for (let counter = 1; counter <= 100; counter++) await ask(put(counter + 1, counter));
  expect(verifyTopicStore(join(root, "a"))).toMatchObject({ problems: [], topics: 1, messages: 100 });
  backupTopicStore(join(root, "a"), join(root, "b"));
  expect(() => backupTopicStore(join(root, "a"), join(root, "b"))).toThrow("already exists");
  await store.close();
  const copy = await open(join(root, "b"));
  expect((await copy.ask(get(3, -1, { max: 999 }))).messages).toHaveLength(100);
  await copy.store.close();
  const database = new DatabaseSync(join(root, "b/topics.sqlite"));
  database.exec(
    "DELETE FROM messages WHERE id = 50; UPDATE clients SET position = 500 WHERE name = CAST('reader' AS BLOB)",
  );
  database.exec(
    "UPDATE messages SET records = zeroblob(20) WHERE id = 60; UPDATE messages SET topic = 99 WHERE id = 70",
  );
  database.close();
  const { problems } = verifyTopicStore(join(root, "b"));
  expect(problems.join("\n")).toContain('message 50 of topic "news": the row is missing');
  expect(problems.join("\n")).toContain("row 60");
  expect(problems.join("\n")).toContain('"reader" is at message 500, but the newest is 100');
  expect(problems.join("\n")).toContain("1 row of messages left of topic 99");
  expect(() => backupTopicStore(join(root, "b"), join(root, "c"))).toThrow(
    'row 60 of the messages of topic "news" is damaged',
  );
  expect(readdirSync(join(root, "c"))).toEqual([]);
  expect(() => verifyTopicStore(join(root, "nowhere"))).toThrow("There is no topic store");
});

test("a backup that was interrupted is no store, and the next one into its folder says why it is none", async () => {
  const { store } = await open(join(root, "a"));
  await store.create("news", incarnation);
  const [from, to] = [join(root, "a"), join(root, "b")];
  const atTheEnd = () => {
    expect(() => verifyTopicStore(to)).toThrow("There is no topic store");
    expect(() => backupTopicStore(from, to)).toThrow("of an interrupted or running backup, already exists");
    throw new Error("no more");
  };
  expect(() => backupTopicStore(from, to, atTheEnd)).toThrow("no more");
  backupTopicStore(from, to);
  expect(verifyTopicStore(to)).toMatchObject({ problems: [], topics: 1 });
  await store.close();
  truncateSync(join(to, "topics.sqlite"));
  expect(() => verifyTopicStore(to)).toThrow("topics.sqlite is empty or truncated");
});

describe("kill -9", () => {
  /** The lines that the child has said by now. */
  function start(dir: string): { child: ChildProcess; lines: () => string[]; ended: Promise<unknown> } {
    const child = spawn(bun, [program, dir, "0"], { stdio: ["ignore", "pipe", "inherit"] });
    let said = "";
    child.stdout?.setEncoding("utf8").on("data", (chunk: string) => said += chunk);
    return { child, lines: () => said.split("\n").slice(0, -1), ended: new Promise((done) => child.on("close", done)) };
  }

  const seed = testSeed();
  test(`at any moment loses nothing that was answered OK, and doubles nothing [BATON_SEED=${seed}]`, async () => {
    const random = seededRandom(seed);
    for (let round = 0; round < dose({ gate: 6, full: 100 }); round++) {
      const dir = join(root, `round ${round}`);
      const { child, lines, ended } = start(dir);
      const wanted = 2 + Math.floor(random() * 400);
      await eventually(() => lines().length >= wanted, { withinMs: 30_000, everyMs: 1, what: "the child to put" });
      child.kill("SIGKILL");
      await ended;
      const answered = new Map(
        lines().filter((line) => line.startsWith("ok ")).map((line) =>
          line.split(" ").slice(1).map(Number) as [number, number]
        ),
      );
      expect(verifyTopicStore(dir).problems).toEqual([]);
      const { store, ask } = await open(dir);
      const { messages = [] } = await ask(get(1, -1, { max: 1_000_000, maxBytes: 64 << 20 }));
      const stored = messages.map(({ id, body }) => [Number(new TextDecoder().decode(body).slice(5)), id] as const);
      expect(new Set(stored.map(([counter]) => counter)).size).toBe(stored.length);
      expect(messages.map(({ id }) => id)).toEqual(messages.map((_, index) => index + 1));
      const byCounter = new Map(stored);
      for (const [counter, id] of answered) expect([counter, byCounter.get(counter)]).toEqual([counter, id]);
      // Its publisher tries everything again: what was stored is the same message, what was not comes now, once.
      for (let counter = 1; counter <= answered.size + 16; counter++) {
        const { code, ids } = await ask(put(10 + counter, counter));
        expect(code).toBe("OK");
        const known = byCounter.get(counter);
        if (known !== undefined) expect(ids?.[0]?.first).toBe(known);
      }
      await store.close();
    }
  });
});
