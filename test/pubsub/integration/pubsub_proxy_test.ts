/** A proxy between clients and servers that do what a test says, on real sockets. */
import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { BatonError } from "../../../src/base/errors.ts";
import { DealerSocket } from "../../../src/protocols/zeromq/dealer_socket.ts";
import { eventually } from "../../support/eventually.ts";
import { get, ProxyRig, put } from "../../support/proxy_rig.ts";

setDefaultTimeout(30_000);

const rig = new ProxyRig();
afterEach(() => rig.end());

test("a request goes to the server that has its topic, and the answer comes back as it is", async () => {
  const { directory, client } = await rig.start();
  const [one, two] = [await rig.server("s1"), await rig.server("s2")];
  directory.add(one, "a");
  directory.add(two, "b");
  two.behaviour = () => ({ status: "OK", messageId: 7, body: new TextEncoder().encode("hi"), headers: { msgId: "x" } });
  const say = client();
  expect(await say.say(put("a", 1))).toMatchObject({ status: "OK", sender: "s1" });
  expect(await say.say(get("b"))).toMatchObject({
    status: "OK",
    sender: "s2",
    messageId: 7,
    text: "hi",
    headers: { msgId: "x" },
  });
  expect(one.received.map(({ name }) => name)).toEqual(["PUT"]);
  expect(two.received.map(({ name }) => name)).toEqual(["GET"]);
});

test("many requests at once get their own answers, each one", async () => {
  const { proxy, directory, client } = await rig.start();
  const [one, two] = [await rig.server("s1"), await rig.server("s2")];
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
  expect([proxy.inFlight.requests, proxy.inFlight.bytes]).toEqual([0, 0]);
});

test("a PUT that makes no sense is refused by the server, and without a server by the proxy", async () => {
  const { directory, client } = await rig.start();
  const server = await rig.server("s1");
  directory.add(server, "t");
  const say = client();
  for (const rest of ["-5\r\n", "1\r\ncount: 2\r\n"]) {
    const of = (topic: string) => [new TextEncoder().encode(`PUT a ${topic} ${rest}deadline-ms: 200\r\n\r\nx`)];
    expect(await say.ask(of("t"))).toMatchObject({ status: "BAD_REQUEST", sender: "s1" });
    expect(await say.ask(of("elsewhere"))).toMatchObject({ status: "BAD_REQUEST", sender: "p1" });
  }
});

test("what makes no sense is answered BAD_REQUEST with a sentence, and hurts nobody", async () => {
  const { proxy, directory, client, endpoint } = await rig.start();
  directory.add(await rig.server("s1"), "*");
  const say = client();
  const encode = (text: string) => new TextEncoder().encode(text);
  const nonsense = [
    [encode("")],
    [encode("rubbish")],
    [encode("GET\r\n\r\n")],
    [encode("PUT a\r\n\r\nx")],
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
  rig.keep(bare);
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
  const { proxy, directory, client } = await rig.start();
  directory.add(await rig.server("s1"), "a b", "c");
  const say = client();
  expect(await say.plain("HELLO me\r\nversion: 1")).toMatchObject({
    status: "OK",
    sender: "p1",
    headers: { version: 1 },
  });
  const hello = await say.plain("HELLO me");
  expect([hello.status, hello.headers]).toEqual(["OK", undefined]);
  expect(await say.plain("TOPICS me")).toMatchObject({ status: "OK", text: "a%20b c" });
  expect(await say.plain("PERIODIC s1", "a%20b c")).toMatchObject({ status: "OK" });
  expect(proxy.loads.get("s1")?.topics).toBe(2);
});

test("NOT_OWNER sends a request to the server that the answer names, or to the owner that is found", async () => {
  const { directory, client } = await rig.start();
  const [one, two] = [await rig.server("s1"), await rig.server("s2")];
  directory.add(one, "t", "u");
  directory.add(two);
  const say = client();
  await say.say(put("t", 1));
  await say.say(put("u", 1));
  one.behaviour = (message) => ({
    status: "NOT_OWNER",
    ...(message.headers === undefined ? {} : { headers: { owner: "s2", epoch: 5 } }),
  });
  directory.give("t", "s2");
  directory.give("u", "s2");
  expect(await say.say(put("t", 2, { version: 1 }))).toMatchObject({ status: "OK", sender: "s2" });
  expect(await say.say(put("u", 2))).toMatchObject({ status: "OK", sender: "s2" });
  expect(directory.corrections.map(({ hint }) => hint)).toEqual([{ owner: "s2", epoch: 5 }, null]);
});

test("a request for a topic in a handoff is sent again, and the client only sees a delay", async () => {
  const { directory, client } = await rig.start();
  const one = await rig.server("s1");
  directory.add(one, "t");
  let refusals = 4;
  one.behaviour = () => ({ status: refusals-- > 0 ? "OVERLOADED" : "OK" });
  expect((await client().plain("PUT bob t 1", "x")).status).toBe("OK");
  expect(one.received.length).toBe(5);
});

test("requests of a lost server are sent again where this is safe; the outcome of others is unknown", async () => {
  const { directory, client } = await rig.start({ requestTimeoutMs: 10_000 });
  const one = await rig.server("s1");
  directory.add(one, "t");
  one.behaviour = () => null;
  const say = client();
  const asked = [
    say.say(put("t", 1)),
    say.say(get("t")),
    say.say({ name: "SUBSCRIBE", sender: "a", topic: "t" }),
    say.say({ name: "SUBSCRIBE", sender: "a", topic: "t", headers: { op: 1 } }),
  ];
  await eventually(() => one.received.length === 4);
  await one.close();
  expect(await asked[2]).toMatchObject({ status: "ERROR", sender: "p1" });
  one.behaviour = () => ({ status: "OK" });
  await one.open();
  for (const at of [0, 1, 3]) expect(await asked[at]).toMatchObject({ status: "OK", sender: "s1" });
  expect(one.received.length).toBe(7);
});

test("a server that is said to be there and is not reached is told of once, one that has left is not", async () => {
  const problems: string[] = [];
  const onProblem = ({ message }: Error) => problems.push(message);
  const { directory, client } = await rig.start({ requestTimeoutMs: 300, onProblem });
  const [one, two] = [await rig.server("s1"), await rig.server("s2")];
  directory.add(one, "t");
  directory.add(two, "u");
  const say = client();
  for (const topic of ["t", "u"]) expect((await say.say(put(topic, 1))).status).toBe("OK");
  await Promise.all([one.close(), two.close()]);
  directory.remove("s2");
  const began = performance.now();
  await eventually(async () => {
    for (const topic of ["t", "u"]) expect((await say.say(put(topic, 2))).status).toBe("OVERLOADED");
    return performance.now() - began > 2500;
  }, { withinMs: 10_000 });
  expect(problems).toEqual([`server "s1" at ${one.endpoint}: the connection was lost`]);
});

test("a server that comes back elsewhere gets what waited for it", async () => {
  const { directory, client } = await rig.start({ requestTimeoutMs: 10_000 });
  const [one, again] = [await rig.server("s1"), await rig.server("s1")];
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
  const { proxy, directory, client } = await rig.start({ requestTimeoutMs: 1200, limits: { windowPerServer: 8 } });
  const [silent, good] = [await rig.server("s1"), await rig.server("s2")];
  directory.add(silent, "quiet");
  directory.add(good, "loud");
  const held: (() => void)[] = [];
  const say = client();
  // A connection that has yet to come about is another matter, and takes its time on a busy machine.
  for (const topic of ["quiet", "loud"]) expect((await say.say(put(topic, 1000))).status).toBe("OK");
  silent.received.length = 0;
  silent.behaviour = (message) =>
    message.name === "GET" ? null : new Promise((resolve) => held.push(() => resolve({ status: "OK" })));
  const quiet = Array.from({ length: 20 }, (_, n) => say.say(put("quiet", n, { version: 1 })));
  const gets = Array.from({ length: 3 }, () => say.say(get("quiet")));
  await eventually(() => silent.received.length >= 8);
  for (let n = 0; n < 50; n++) expect((await say.say(put("loud", n))).quietMs).toBeLessThan(1000);
  const answers = await Promise.all(quiet);
  // What was sent may have been done; what never left has not.
  expect(answers.filter(({ status, headers }) => status === "ERROR" && headers?.unknown === true).length).toBe(8);
  expect(answers.filter(({ status }) => status === "OVERLOADED").length).toBe(12);
  expect((await Promise.all(gets)).map(({ status }) => status)).toEqual(["OVERLOADED", "OVERLOADED", "OVERLOADED"]);
  for (const { quietMs } of answers) expect(quietMs).toBeLessThan(3000);
  expect(silent.received.filter(({ name }) => name === "PUT").length).toBe(8);
  expect(proxy.inFlight.requests).toBe(0);
  // It gets no more than it has, however many have given up; and all it can take once it speaks again.
  expect(await say.say(put("quiet", 98))).toMatchObject({ status: "OVERLOADED" });
  expect(held.length).toBe(8);
  silent.behaviour = () => ({ status: "OK" });
  for (const answer of held) answer();
  await eventually(() => proxy.counters.lateResponses === 8);
  const later = Array.from({ length: 20 }, (_, n) => say.say(put("quiet", 100 + n)));
  expect(new Set((await Promise.all(later)).map(({ status }) => status))).toEqual(new Set(["OK"]));
});

test("a request is answered by the time that it names itself", async () => {
  const { directory, client } = await rig.start({ requestTimeoutMs: 20_000 });
  const one = await rig.server("s1");
  directory.add(one, "t");
  one.behaviour = () => null;
  const answer = await client().say(put("t", 1, { deadlineMs: 150 }));
  expect(answer).toMatchObject({ status: "ERROR", headers: { unknown: true } });
  expect(answer.quietMs).toBeLessThan(2000);
});

test("without a server for its topic a request is certainly not done, or waits until there is one", async () => {
  const { directory, client } = await rig.start({ requestTimeoutMs: 300 });
  const say = client();
  expect(await say.say(put("t", 1))).toMatchObject({
    status: "OVERLOADED",
    text: "Not done: there is no server; start one with: baton pubsub server",
  });
  directory.later = [new BatonError("CONFIG", 'server "s3" announces itself in a format of tomorrow')];
  expect(await say.say(put("t", 1))).toMatchObject({
    status: "OVERLOADED",
    text: 'Not done: server "s3" announces itself in a format of tomorrow',
  });
  directory.later = [];
  directory.give("t", "s1");
  expect(await say.say(put("t", 1))).toMatchObject({
    status: "OVERLOADED",
    text: 'Not done: server "s1", which owns topic "t", is not connected',
  });
  const asked = say.say(put("t", 1, { deadlineMs: 10_000 }));
  directory.add(await rig.server("s1"));
  expect((await asked).status).toBe("OK");
  directory.isConnected = false;
  expect((await say.say(put("t", 2))).status).toBe("OK"); // what is remembered needs nobody
  expect(await say.say(put("new", 1))).toMatchObject({ status: "OVERLOADED" });
});

test("a proxy that leaves finishes its requests, sends waiting clients elsewhere, and takes nothing new", async () => {
  const { proxy, directory, client } = await rig.start({ requestTimeoutMs: 20_000 });
  const one = await rig.server("s1");
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

test("a proxy that leaves does not wait for a server that is not there", async () => {
  const { proxy, directory, client } = await rig.start({ requestTimeoutMs: 20_000 });
  directory.give("t", "s1");
  const asked = client().say(put("t", 1));
  await eventually(() => directory.looked.length > 1);
  const began = performance.now();
  await proxy.drain(20_000);
  expect(await asked).toMatchObject({ status: "OVERLOADED", text: "Not done: this proxy is leaving" });
  expect(performance.now() - began).toBeLessThan(10_000);
});

test("a proxy that leaves does not wait for ever, and says what it does not know", async () => {
  const { proxy, directory, client } = await rig.start({ requestTimeoutMs: 20_000 });
  const one = await rig.server("s1");
  directory.add(one, "t");
  one.behaviour = () => null;
  const asked = client().say(put("t", 1, { version: 1 }));
  await eventually(() => one.received.length === 1);
  await proxy.drain(50);
  expect(await asked).toMatchObject({ status: "ERROR", headers: { unknown: true } });
});

test("a get that waits is cancelled at its server when the client leaves, and when its time is over", async () => {
  const { directory, client } = await rig.start();
  const server = await rig.server("s1");
  server.behaviour = (message) => message.name === "GET" ? null : { status: "OK" };
  directory.add(server, "t");
  const names = () => server.received.map(({ name }) => name);
  const leaves = client();
  leaves.say(get("t", -1, { waitMs: 20_000 })).catch(() => {});
  await eventually(() => names().length === 1);
  await leaves[Symbol.asyncDispose]();
  await eventually(() => names().join() === "GET,CANCEL");
  const late = await client().say(get("t", -1, { waitMs: 20_000, deadlineMs: 200 }));
  expect(late.status).toBe("OVERLOADED");
  await eventually(() => names().join() === "GET,CANCEL,GET,CANCEL");
  // What does not wait is over in a moment, and is not worth a word.
  expect((await client().say(get("t", -1, { deadlineMs: 200 }))).status).toBe("OVERLOADED");
  await client().say(put("t", 1));
  expect(names().slice(4)).toEqual(["GET", "PUT"]);
});
