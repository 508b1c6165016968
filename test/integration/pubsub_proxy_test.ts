/** A proxy between clients and servers that do what a test says, on real sockets. */
import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { DealerSocket } from "../../src/clients/zeromq/dealer_socket.ts";
import { Proxy, type ProxyOptions } from "../../src/recipes/pubsub/proxy/proxy.ts";
import { systemClock } from "../../src/support/clock.ts";
import { bodyBytesMax, headerBytesMax } from "../../src/wire/pubsub/limits.ts";
import type { Message } from "../../src/wire/pubsub/messages.ts";
import { eventually } from "../support/eventually.ts";
import { FakeDirectory } from "../support/fake_directory.ts";
import { FakePubsubServer } from "../support/fake_pubsub_server.ts";
import { ProxyClient } from "../support/proxy_client.ts";

setDefaultTimeout(30_000);

const ends: AsyncDisposable[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end[Symbol.asyncDispose]();
});

async function server(id: string): Promise<FakePubsubServer> {
  const server = await FakePubsubServer.start(id);
  ends.push(server);
  return server;
}

async function start(options: Partial<ProxyOptions> = {}): Promise<{
  proxy: Proxy;
  directory: FakeDirectory;
  endpoint: string;
  client: () => ProxyClient;
}> {
  const directory = new FakeDirectory();
  const proxy = new Proxy({ id: "p1", directory, clock: systemClock(), patienceMs: 1000, ...options });
  ends.push(proxy);
  const endpoint = await proxy.listen("tcp://127.0.0.1:0");
  const client = () => {
    const client = new ProxyClient(endpoint);
    ends.push(client);
    return client;
  };
  return { proxy, directory, endpoint, client };
}

const put = (topic: string, counter: number, lines?: Message["lines"]) =>
  ({ name: "PUT", sender: "bob", topic, counter, body: new TextEncoder().encode(`m${counter}`), lines }) as const;
const get = (topic: string, last = -1, lines: Message["lines"] = undefined) =>
  ({ name: "GET", sender: "alice", topic, last, lines }) as const;

test("a request goes to the server that has its topic, and the answer comes back as it is", async () => {
  const { directory, client } = await start();
  const [one, two] = [await server("s1"), await server("s2")];
  directory.add(one, "a");
  directory.add(two, "b");
  two.behaviour = () => ({ status: "OK", messageId: 7, body: new TextEncoder().encode("hi"), lines: { msgId: "x" } });
  const say = client();
  expect(await say.say(put("a", 1))).toMatchObject({ status: "OK", sender: "s1" });
  expect(await say.say(get("b"))).toMatchObject({
    status: "OK",
    sender: "s2",
    messageId: 7,
    text: "hi",
    lines: { msgId: "x" },
  });
  expect(one.received.map(({ name }) => name)).toEqual(["PUT"]);
  expect(two.received.map(({ name }) => name)).toEqual(["GET"]);
});

test("many requests at once get their own answers, each one", async () => {
  const { proxy, directory, client } = await start();
  const [one, two] = [await server("s1"), await server("s2")];
  directory.add(one, "t0", "t2", "t4");
  directory.add(two, "t1", "t3");
  for (const it of [one, two]) {
    it.behaviour = (message) => ({ status: "OK", messageId: message.name === "PUT" ? message.counter : 0 });
  }
  const clients = [client(), client(), client()];
  const answers = await Promise.all(
    clients.flatMap((say) => Array.from({ length: 200 }, (_, n) => say.say(put(`t${n % 5}`, n)))),
  );
  expect(answers.map(({ messageId }) => messageId)).toEqual(
    clients.flatMap(() => Array.from({ length: 200 }, (_, n) => n)),
  );
  expect(clients.map(({ unasked }) => unasked)).toEqual([0, 0, 0]);
  expect([proxy.underWay.requests, proxy.underWay.bytes]).toEqual([0, 0]);
});

test("what makes no sense is answered BAD_REQUEST with a sentence, and hurts nobody", async () => {
  const { proxy, directory, client, endpoint } = await start();
  directory.add(await server("s1"), "*");
  const say = client();
  const encode = (text: string) => new TextEncoder().encode(text);
  const nonsense = [
    [encode("")],
    [encode("rubbish")],
    [encode("GET\r\n\r\n")],
    [encode("PUT a b -5\r\n\r\nx")],
    [encode("PUT a b 1\r\ncount: 2\r\n\r\n"), encode("only one")],
    [new Uint8Array([0xff, 0xfe, 13, 10, 13, 10])],
    [new Uint8Array(100_000)],
    Array.from({ length: 50 }, () => encode("x")),
    [encode("TRANSFER s1 t\r\n\r\nx")],
  ];
  for (const frames of nonsense) {
    const answer = await say.ask(frames);
    expect(answer.status).toBe("BAD_REQUEST");
    expect(answer.text.length).toBeGreaterThan(10);
  }
  // Without an empty frame: the answer has one all the same.
  const bare = new DealerSocket();
  ends.push(bare);
  bare.connect(endpoint);
  await bare.send([encode("GET a b -1\r\n\r\n")]);
  const [empty, header] = await bare.receive();
  expect([empty?.byteLength, new TextDecoder().decode(header).split("\r")[0]]).toEqual([0, "STATUS p1 BAD_REQUEST"]);
  // An answer to an answer might go on for ever.
  await bare.send([new Uint8Array(0), encode("STATUS x OK\r\n\r\n")]);
  expect((await say.say(put("t", 1))).status).toBe("OK");
  expect(proxy.counters.dropped).toBe(1);
});

test("the proxy answers by itself: who it is, which topics there are, and a server's report", async () => {
  const { proxy, directory, client } = await start();
  directory.add(await server("s1"), "a b", "c");
  const say = client();
  expect(await say.plain("HELLO me\r\nversion: 1")).toMatchObject({
    status: "OK",
    sender: "p1",
    lines: { version: 1 },
  });
  const hello = await say.plain("HELLO me");
  expect([hello.status, hello.lines]).toEqual(["OK", undefined]);
  expect(await say.plain("TOPICS me")).toMatchObject({ status: "OK", text: "a%20b c" });
  expect(await say.plain("PERIODIC s1", "a%20b c")).toMatchObject({ status: "OK" });
  expect(proxy.loads.all.get("s1")?.topics).toBe(2);
});

test("NOT_OWNER sends a request to the server that the answer names, or to where the topic is found to be", async () => {
  const { directory, client } = await start();
  const [one, two] = [await server("s1"), await server("s2")];
  directory.add(one, "t", "u");
  directory.add(two);
  const say = client();
  await say.say(put("t", 1));
  await say.say(put("u", 1));
  one.behaviour = (message) => ({
    status: "NOT_OWNER",
    ...(message.lines === undefined ? {} : { lines: { owner: "s2", epoch: 5 } }),
  });
  directory.give("t", "s2");
  directory.give("u", "s2");
  expect(await say.say(put("t", 2, { version: 1 }))).toMatchObject({ status: "OK", sender: "s2" });
  expect(await say.say(put("u", 2))).toMatchObject({ status: "OK", sender: "s2" });
  expect(directory.corrections.map(({ hint }) => hint)).toEqual([{ owner: "s2", epoch: 5 }, null]);
});

test("a topic on its way to another server is asked for again, and the client sees only that it took a moment", async () => {
  const { directory, client } = await start();
  const one = await server("s1");
  directory.add(one, "t");
  let refusals = 4;
  one.behaviour = () => ({ status: refusals-- > 0 ? "OVERLOADED" : "OK" });
  expect((await client().plain("PUT bob t 1", "x")).status).toBe("OK");
  expect(one.received.length).toBe(5);
});

test("a lost server's requests are sent again where that does nothing twice, and are otherwise said to be unknown", async () => {
  const problems: string[] = [];
  const onProblem = ({ message }: Error) => problems.push(message);
  const { directory, client } = await start({ patienceMs: 10_000, onProblem });
  const one = await server("s1");
  directory.add(one, "t");
  one.behaviour = () => null;
  const say = client();
  const asked = [
    say.say(put("t", 1)),
    say.say(get("t")),
    say.say({ name: "SUBSCRIBE", sender: "a", topic: "t" }),
    say.say({ name: "SUBSCRIBE", sender: "a", topic: "t", lines: { op: 1 } }),
  ];
  await eventually(() => one.received.length === 4);
  await one.close();
  expect(await asked[2]).toMatchObject({ status: "ERROR", sender: "p1" });
  one.behaviour = () => ({ status: "OK" });
  await one.open();
  for (const at of [0, 1, 3]) expect(await asked[at]).toMatchObject({ status: "OK", sender: "s1" });
  expect(one.received.length).toBe(7);
  expect(problems).toEqual([`server "s1" at ${one.endpoint}: the connection was lost`]);
});

test("a server that comes back elsewhere gets what waited for it", async () => {
  const { directory, client } = await start({ patienceMs: 10_000 });
  const [one, again] = [await server("s1"), await server("s1")];
  directory.add(one, "t");
  one.behaviour = () => null;
  const asked = client().say(put("t", 1));
  await eventually(() => one.received.length === 1);
  await one.close();
  directory.remove("s1");
  directory.add(again);
  expect(await asked).toMatchObject({ status: "OK" });
  expect(again.received).toMatchObject([{ name: "PUT", counter: 1 }]);
});

test("a silent server costs its own topics their time, and the others nothing", async () => {
  const { proxy, directory, client } = await start({ patienceMs: 600, limits: { windowPerServer: 8 } });
  const [silent, good] = [await server("s1"), await server("s2")];
  directory.add(silent, "quiet");
  directory.add(good, "loud");
  silent.behaviour = () => null;
  const say = client();
  const quiet = Array.from({ length: 20 }, (_, n) => say.say(put("quiet", n, { version: 1 })));
  const gets = Array.from({ length: 3 }, () => say.say(get("quiet")));
  await eventually(() => silent.received.length >= 8);
  for (let n = 0; n < 50; n++) expect((await say.say(put("loud", n))).tookMs).toBeLessThan(500);
  const answers = await Promise.all(quiet);
  // What was sent may have been done; what never left has not.
  expect(answers.filter(({ status, lines }) => status === "ERROR" && lines?.unknown === true).length).toBe(8);
  expect(answers.filter(({ status }) => status === "OVERLOADED").length).toBe(12);
  expect((await Promise.all(gets)).map(({ status }) => status)).toEqual(["OVERLOADED", "OVERLOADED", "OVERLOADED"]);
  for (const { tookMs } of answers) expect(tookMs).toBeLessThan(1500);
  expect(silent.received.length).toBe(8);
  expect(proxy.underWay.requests).toBe(0);
});

test("a request is answered by the time that it names itself", async () => {
  const { directory, client } = await start({ patienceMs: 20_000 });
  const one = await server("s1");
  directory.add(one, "t");
  one.behaviour = () => null;
  const answer = await client().say(put("t", 1, { deadlineMs: 150 }));
  expect(answer).toMatchObject({ status: "ERROR", lines: { unknown: true } });
  expect(answer.tookMs).toBeLessThan(2000);
});

test("without a server, or without one that has the topic, a request is definitely not done, or waits until there is one", async () => {
  const { directory, client } = await start({ patienceMs: 300 });
  const say = client();
  expect(await say.say(put("t", 1))).toMatchObject({ status: "OVERLOADED", text: "Not done: there is no server" });
  directory.give("t", "s1");
  expect(await say.say(put("t", 1))).toMatchObject({
    status: "OVERLOADED",
    text: "Not done: server s1, which has the topic, is not there",
  });
  const asked = say.say(put("t", 1, { deadlineMs: 10_000 }));
  directory.add(await server("s1"));
  expect((await asked).status).toBe("OK");
  directory.isThere = false;
  expect((await say.say(put("t", 2))).status).toBe("OK"); // what is remembered needs nobody
  expect(await say.say(put("new", 1))).toMatchObject({ status: "OVERLOADED" });
});

test("the largest message passes, header and body at their limits, and one that costs every connection is not sent for ever", async () => {
  const { proxy, directory, client } = await start({ patienceMs: 20_000 });
  const one = await server("s1");
  directory.add(one, "t");
  const say = client();
  const padding = `x-pad: ${"p".repeat(headerBytesMax - "PUT bob t 1\r\nx-pad: \r\n\r\n".length)}`;
  const header = new TextEncoder().encode(`PUT bob t 1\r\n${padding}\r\n\r\n`);
  const largest = new Uint8Array(header.byteLength + bodyBytesMax);
  largest.set(header);
  expect(header.byteLength).toBe(headerBytesMax);
  expect((await say.ask([largest])).status).toBe("OK");
  one.behaviour = async () => {
    await one.close();
    await one.open();
    return null;
  };
  expect(await say.say(put("t", 2, { version: 1 }))).toMatchObject({ status: "ERROR", lines: { unknown: true } });
  expect(proxy.counters.serversLost).toBe(5);
});

test("a client with one request does not come behind all of a client with many", async () => {
  const { directory, client } = await start({ patienceMs: 20_000, limits: { windowPerServer: 2 } });
  const one = await server("s1");
  directory.add(one, "t");
  const held: (() => void)[] = [];
  one.behaviour = () => new Promise((resolve) => held.push(() => resolve({ status: "OK" })));
  const [busy, modest] = [client(), client()];
  const many = Array.from({ length: 100 }, (_, n) => busy.say({ ...put("t", n), sender: "busy" }));
  await eventually(() => one.received.length === 2);
  const few = modest.say({ ...put("t", 0), sender: "modest" });
  await modest.plain("HELLO x"); // the put has come before it
  for (let answered = 0; answered < 101; answered++) {
    await eventually(() => held.length > 0);
    held.shift()?.();
  }
  await Promise.all([...many, few]);
  const place = one.received.findIndex((message) => message.name === "PUT" && message.sender === "modest");
  expect(place).toBeLessThan(6);
});

test("over a limit a request is refused at once, and there is room again when others are answered", async () => {
  const limits = { perClient: 3, perTopic: 4, inAll: 5, bytesPerClient: 1000 };
  const { proxy, directory, client } = await start({ patienceMs: 20_000, limits });
  const one = await server("s1");
  directory.add(one, "t", "u");
  const held: (() => void)[] = [];
  one.behaviour = () => new Promise((resolve) => held.push(() => resolve({ status: "OK" })));
  const [a, b, c] = [client(), client(), client()];
  const asked: Promise<unknown>[] = [1, 2, 3].map((n) => a.say(put("t", n)));
  await eventually(() => proxy.underWay.requests === 3);
  expect(await a.say(put("t", 4))).toMatchObject({
    status: "OVERLOADED",
    text: expect.stringMatching(/this connection has 3/),
  });
  asked.push(b.say(put("t", 1)));
  await eventually(() => proxy.underWay.requests === 4);
  expect(await b.say(put("t", 2))).toMatchObject({
    status: "OVERLOADED",
    text: expect.stringMatching(/the topic "t" has 4/),
  });
  asked.push(c.say(put("u", 1)));
  await eventually(() => proxy.underWay.requests === 5);
  expect(await c.say(put("u", 2))).toMatchObject({
    status: "OVERLOADED",
    text: expect.stringMatching(/this proxy has 5/),
  });
  await eventually(() => held.length === 5);
  for (const answer of held.splice(0)) answer();
  await Promise.all(asked);
  one.behaviour = () => ({ status: "OK" });
  expect((await a.say(put("t", 4))).status).toBe("OK");
  expect((await a.say({ ...put("t", 5), body: new Uint8Array(5000) })).status).toBe("OK"); // one always has room
  expect([proxy.underWay.requests, proxy.underWay.bytes]).toEqual([0, 0]);
});

test("a client that never reads loses answers, and nobody else notices", async () => {
  const { proxy, directory, endpoint, client } = await start({ patienceMs: 5000 });
  const one = await server("s1");
  directory.add(one, "t");
  const body = new Uint8Array(256 << 10);
  one.behaviour = (message) => message.name === "GET" ? { status: "OK", messageId: 1, body } : { status: "OK" };
  const deaf = new DealerSocket({ receiveHighWater: 1, sendHighWater: 100_000 });
  ends.push(deaf);
  deaf.connect(endpoint);
  const say = client();
  let sent = 0;
  await eventually(async () => {
    for (let n = 0; n < 50; n++) {
      const header = new TextEncoder().encode("GET deaf t -1\r\n\r\n");
      deaf.trySend([new TextEncoder().encode(String(sent++)), new Uint8Array(0), header]);
    }
    expect((await say.say(put("t", sent))).tookMs).toBeLessThan(2000);
    return proxy.counters.unread > 0;
  }, { withinMs: 20_000, what: "answers to be dropped" });
  expect((await say.say(put("t", sent + 1))).status).toBe("OK");
});

test("a client that is gone has what it asked for forgotten, unless a server has it", async () => {
  const { proxy, directory, endpoint } = await start({ patienceMs: 20_000, limits: { windowPerServer: 1 } });
  const one = await server("s1");
  directory.add(one, "t");
  one.behaviour = () => null;
  const leaving = new ProxyClient(endpoint);
  for (let n = 0; n < 10; n++) leaving.say(put("t", n)).catch(() => {});
  await eventually(() => proxy.underWay.requests === 10 && one.received.length === 1);
  leaving.withinMs = 1;
  await leaving[Symbol.asyncDispose]();
  await eventually(() => proxy.underWay.requests === 0);
  expect(one.received.length).toBe(1);
});

test("a proxy that leaves finishes what is under way, sends who waits to another one, and takes nothing new", async () => {
  const { proxy, directory, client } = await start({ patienceMs: 20_000 });
  const one = await server("s1");
  directory.add(one, "t");
  const held: (() => void)[] = [];
  one.behaviour = (message) =>
    message.name === "GET" ? null : new Promise((resolve) => held.push(() => resolve({ status: "OK" })));
  const say = client();
  const asked = say.say(put("t", 1));
  const waiting = say.say(get("t", -1, { waitMs: 60_000 }));
  await eventually(() => one.received.length === 2);
  const drained = proxy.drain(10_000);
  expect(await waiting).toMatchObject({ status: "OVERLOADED", text: "Not done: this proxy is leaving" });
  expect(await say.say(put("t", 2))).toMatchObject({ status: "OVERLOADED" });
  held[0]?.();
  expect((await asked).status).toBe("OK");
  await drained;
});

test("a proxy that leaves does not wait for ever, and says what it does not know", async () => {
  const { proxy, directory, client } = await start({ patienceMs: 20_000 });
  const one = await server("s1");
  directory.add(one, "t");
  one.behaviour = () => null;
  const asked = client().say(put("t", 1, { version: 1 }));
  await eventually(() => one.received.length === 1);
  await proxy.drain(50);
  expect(await asked).toMatchObject({ status: "ERROR", lines: { unknown: true } });
});
