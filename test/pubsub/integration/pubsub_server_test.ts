/** One publish/subscribe server, or two, in this process: real sockets, real stores, a real keeper. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectToZooKeeper } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { announceProcess } from "../../../src/pubsub/ownership/announcements.ts";
import { PubsubPath } from "../../../src/pubsub/ownership/pubsub_path.ts";
import { TopicServer, type TopicServerOptions } from "../../../src/pubsub/server/topic_server.ts";
import { DealerSocket } from "../../../src/protocols/zeromq/dealer_socket.ts";
import { RouterSocket } from "../../../src/protocols/zeromq/router_socket.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { newGuid } from "../../../src/base/support/guid.ts";
import { decodePubsubMessage } from "../../../src/pubsub/wire/decode_message.ts";
import { encodePubsubMessage } from "../../../src/pubsub/wire/encode_message.ts";
import type { PubsubHeaders } from "../../../src/pubsub/wire/pubsub_messages.ts";
import type { RunningBackend } from "../../support/backends.ts";
import { eventually } from "../../support/eventually.ts";
import { startKeeperProcess } from "../../support/keeper_server.ts";
import { bytesOf, PubsubTalker, textOf } from "../../support/pubsub_talker.ts";

setDefaultTimeout(60_000);

let backend: RunningBackend;
beforeAll(async () => void (backend = await startKeeperProcess()), 60_000);
afterAll(() => backend.close());

let root = "", path = new PubsubPath();
const ends: (() => Promise<unknown>)[] = [];
const problems: unknown[] = [];
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "baton-pubsub-server-"));
  path = new PubsubPath(`/server-${newGuid().slice(0, 12)}`);
});
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
  rmSync(root, { recursive: true, force: true });
});

const session = (sessionTimeoutMs = 4000): Promise<ZooKeeper> =>
  connectToZooKeeper({ servers: parseZooKeeperServers(backend.servers), sessionTimeoutMs });

async function start(id: string, options: Partial<TopicServerOptions> = {}): Promise<TopicServer> {
  const server = await TopicServer.start({
    id,
    dataDir: join(root, id),
    listen: "tcp://127.0.0.1:0",
    path,
    connect: () => session(),
    clock: systemClock(),
    onProblem: (problem) => problems.push(problem),
    ...options,
  });
  ends.push(() => server.close());
  return server;
}

async function talker(): Promise<PubsubTalker> {
  const zk = await session();
  ends.push(() => zk.close());
  const talker = await PubsubTalker.start(zk, path);
  ends.push(() => talker[Symbol.asyncDispose]());
  return talker;
}

const subscribe = (sender: string, topic: string) => ({ name: "SUBSCRIBE", sender, topic }) as const;
const put = (sender: string, topic: string, counter: number, text: string, headers: PubsubHeaders = {}) =>
  ({ name: "PUT", sender, topic, counter, body: bytesOf(text), headers }) as const;
const get = (sender: string, topic: string, last = -1, headers: PubsubHeaders = {}) =>
  ({ name: "GET", sender, topic, last, headers }) as const;

test("a client subscribes, gets later messages once and in order, and ends its subscription", async () => {
  await start("s1");
  const say = await talker();
  expect((await say.ask(get("alice", "news"))).status).toBe("NOT_SUBSCRIBED");
  expect((await say.ask(put("bob", "news", 1, "before"))).status).toBe("OK");
  expect((await say.ask(subscribe("alice", "news"))).status).toBe("OK");
  expect((await say.ask(get("alice", "news"))).status).toBe("NO_MESSAGE");
  for (const [counter, text] of ["a", "b"].entries()) {
    expect((await say.ask(put("bob", "news", counter + 2, text))).headers?.ids).toHaveLength(1);
  }
  const a = await say.ask(get("alice", "news"));
  expect([a.status, textOf(a.body)]).toEqual(["OK", "a"]);
  expect((await say.ask(get("alice", "news"))).headers?.redelivered).toBe(1);
  const b = await say.ask(get("alice", "news", a.messageId));
  expect(textOf(b.body)).toBe("b");
  expect((await say.ask(get("alice", "news", b.messageId))).status).toBe("NO_MESSAGE");
  expect((await say.ask({ name: "UNSUBSCRIBE", sender: "alice", topic: "news" })).status).toBe("OK");
  expect((await say.ask(get("alice", "news"))).status).toBe("NOT_SUBSCRIBED");
});

test("a client that speaks the paper's messages only is answered in them", async () => {
  const server = await start("s1");
  const say = await talker();
  await say.ask(subscribe("alice", "news"));
  const plain = async (text: string) => await say.send(server.endpoint, [bytesOf(text)]);
  expect(await plain("PUT bob news 1\r\n\r\nhello")).toEqual({ name: "STATUS", sender: "s1", status: "OK" });
  const answer = { name: "STATUS", sender: "s1", status: "OK", messageId: 1, body: bytesOf("hello") } as const;
  expect(await plain("GET alice news -1\r\n\r\n")).toEqual(answer);
  expect(await plain("GET alice news -1\r\n\r\n")).toEqual(answer);
  expect(await plain("GET alice news 1\r\n\r\n")).toEqual({ name: "STATUS", sender: "s1", status: "NO_MESSAGE" });
  expect((await plain("PUT bob news 1\r\n\r\nother")).status).toBe("COUNTER_REUSE");
});

test("nonsense is answered BAD_REQUEST with a sentence, and the server goes on", async () => {
  const server = await start("s1");
  const say = await talker();
  const nonsense = [
    "",
    "HELO x\r\n\r\n",
    "GET alice\r\n\r\n",
    "PUT bob news -5\r\n\r\nx",
    "\0\0\0",
    "STATUS a OK\r\n\r\n",
  ];
  for (const text of nonsense) {
    const answer = await say.send(server.endpoint, [bytesOf(text)]);
    expect([text, answer.status]).toEqual([text, "BAD_REQUEST"]);
    expect(textOf(answer.body)).not.toBe("");
  }
  expect((await say.send(server.endpoint, [])).status).toBe("BAD_REQUEST");
  expect(await say.say(server.endpoint, { name: "HELLO", sender: "x" })).toMatchObject({
    status: "OK",
    headers: { version: 1 },
  });
});

test("batches are put and had whole", async () => {
  await start("s1");
  const say = await talker();
  await say.ask(subscribe("alice", "news"));
  const batch = ["a", "", "c"].map(bytesOf);
  const done = await say.ask({ name: "PUT", sender: "bob", topic: "news", counter: 7, batch });
  expect(done.headers?.ids).toEqual([{ first: 1, last: 3 }]);
  const had = await say.ask(get("alice", "news", -1, { max: 10 }));
  expect(had.batch?.map(textOf)).toEqual(["a", "", "c"]);
  expect(had.headers?.ids).toEqual([{ first: 1, last: 3 }]);
});

test("a get that waits has the next message at once, or NO_MESSAGE when its time is over", async () => {
  await start("s1");
  const say = await talker();
  await say.ask(subscribe("alice", "news"));
  const startMs = performance.now();
  expect((await say.ask(get("alice", "news", -1, { waitMs: 200 }))).status).toBe("NO_MESSAGE");
  expect(performance.now() - startMs).toBeGreaterThan(195);
  const waiting = say.ask(get("alice", "news", -1, { waitMs: 30_000 }));
  await say.ask(put("bob", "news", 1, "now"));
  expect(textOf((await waiting).body)).toBe("now");
});

test("a topic of another server is answered with where it is", async () => {
  const one = await start("s1");
  const two = await start("s2");
  const say = await talker();
  await say.ask(subscribe("alice", "news"));
  const asked = { ...subscribe("alice", "news"), headers: { version: 1 } };
  const hinted = await eventually(async () => {
    const status = await say.say(two.endpoint, asked);
    return status.headers?.endpoint !== undefined && status;
  });
  expect(hinted).toMatchObject({ status: "NOT_OWNER", headers: { owner: "s1", epoch: 1, endpoint: one.endpoint } });
  expect((await say.say(two.endpoint, subscribe("alice", "news"))).status).toBe("NOT_OWNER");
  const unknown = await say.say(two.endpoint, { ...subscribe("alice", "sport"), headers: {} });
  expect(unknown).toMatchObject({ status: "NOT_OWNER" });
});

test("a topic is handed off under load: nothing is lost or doubled, and everything has its order", async () => {
  for (const id of ["s1", "s2"]) await start(id);
  const say = await talker();
  await say.ask(subscribe("alice", "news"));
  let counter = 0, isOver = false;
  const publisher = (name: string) =>
    (async () => {
      for (let own = 1; !isOver; own++) {
        counter++;
        expect((await say.ask(put(name, "news", own, `${name} ${own}`))).status).toBe("OK");
      }
    })();
  const publishers = ["p", "q", "r"].map(publisher);
  for (let turn = 0; turn < 6; turn++) {
    const merge = {
      name: "MERGE",
      sender: "op",
      topic: "news",
      address: `s${(turn + 1) % 2 + 1}`,
      headers: {},
    } as const;
    const before = counter;
    // A busy machine may need longer than a handoff is given: then the topic is where it was.
    await eventually(async () => {
      const { endpoint } = await say.endpoint("news");
      return (await say.say(endpoint, merge, 20_000)).status === "OK";
    }, { withinMs: 20_000, what: `handoff ${turn}` });
    await eventually(() => counter > before + 20, { withinMs: 20_000 });
  }
  isOver = true;
  await Promise.all(publishers);
  const had: string[] = [];
  let last = -1;
  for (;;) {
    const { status, batch = [], headers } = await say.ask(get("alice", "news", last, { max: 100 }));
    if (status !== "OK") break;
    had.push(...batch.map(textOf));
    last = headers?.ids?.at(-1)?.last ?? last;
  }
  expect(had.length).toBe(counter);
  for (const name of ["p", "q", "r"]) {
    const own = had.filter((text) => text.startsWith(name)).map((text) => Number(text.slice(2)));
    expect(own).toEqual(own.map((_, place) => place + 1));
  }
  expect(problems.splice(0)).toEqual([]);
});

test("proxies that are there are told what the server serves, at once and again", async () => {
  const proxy = new RouterSocket();
  ends.push(() => proxy.close());
  const endpoint = await proxy.bind("tcp://127.0.0.1:0");
  await start("s1");
  const say = await talker();
  await say.ask(subscribe("alice", "news"));
  const zk = await session();
  ends.push(() => zk.close());
  const signal = new AbortController().signal;
  await announceProcess(zk, path.proxy("p1"), { id: "p1", endpoint, storeId: "p1" }, { clock: systemClock(), signal });
  const [, , ...frames] = await proxy.receive();
  expect(decodePubsubMessage(frames)).toMatchObject({ name: "PERIODIC", sender: "s1", body: bytesOf("news") });
});

test("a server that leaves answers open requests, gives its topics away when asked, and releases all", async () => {
  const one = await start("s1");
  const two = await start("s2");
  const say = await talker();
  await say.ask(subscribe("alice", "news"));
  await say.ask(put("bob", "news", 1, "kept"));
  const waiting = say.say(one.endpoint, get("alice", "news", 1, { waitMs: 30_000 }), 20_000);
  await eventually(async () => (await one.statistics()).pendingGets === 1);
  expect(await one.leave({ withinMs: 10_000, handOff: true })).toEqual([]);
  expect(["NO_MESSAGE", "OVERLOADED", "NOT_OWNER"]).toContain((await waiting).status);
  expect([...two.topics()]).toEqual(["news"]);
  expect((await say.ask(put("bob", "news", 1, "kept"))).headers?.ids).toEqual([{ first: 1, last: 1 }]);
  await say.ask(put("bob", "news", 2, "new"));
  expect(textOf((await say.ask(get("alice", "news"))).body)).toBe("new");
  // The same data under the same name: free again.
  const again = await start("s1");
  expect([...again.topics()]).toEqual([]);
});

test("data in use is refused, and so are another server's data and name", async () => {
  await start("s1");
  const refusal = (id: string, options: Partial<TopicServerOptions> = {}) =>
    start(id, options).then(() => "started", (thrown) => thrown.code);
  expect(await refusal("s1")).toBe("LOCK_BUSY");
  expect(await refusal("s2", { dataDir: join(root, "s1") })).toBe("LOCK_BUSY");
  // A name is waited for as long as the session of who had it may last.
  expect(await refusal("s1", { dataDir: join(root, "other"), connect: () => session(2000) })).toBe("CONFIG");
  // A refused start does not take the folder; a server that was announced does.
  await (await start("s3", { dataDir: join(root, "other") })).close();
  expect(await refusal("s5", { dataDir: join(root, "other") })).toBe("CONFIG");
  expect(await refusal("s4", { listen: "tcp://192.0.2.1:1" })).toBe("CANNOT_CREATE");
});

test("gets that wait do not outlive the connection that they came by", async () => {
  const server = await start("s1");
  const say = await talker();
  await say.ask(subscribe("alice", "news"));
  await using dealer = new DealerSocket();
  dealer.connect(server.endpoint);
  const waiting = async () => (await server.statistics()).pendingGets;
  for (const number of ["1", "2"]) {
    const request = { ...get("alice", "news"), headers: { waitMs: 50_000 } } as const;
    dealer.trySend([bytesOf(number), new Uint8Array(0), ...encodePubsubMessage(request)]);
  }
  await eventually(async () => await waiting() === 2);
  dealer.trySend([bytesOf("1"), new Uint8Array(0), ...encodePubsubMessage({ name: "CANCEL", sender: "p1" })]);
  const [number, , ...frames] = await dealer.receive({ signal: AbortSignal.timeout(10_000) });
  expect([textOf(number), decodePubsubMessage(frames)]).toMatchObject(["1", { status: "NO_MESSAGE" }]);
  expect(await waiting()).toBe(1);
  await dealer.close({ lingerMs: 0 });
  await eventually(async () => await waiting() === 0);
});
