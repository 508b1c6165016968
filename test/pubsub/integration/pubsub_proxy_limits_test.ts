/** What a proxy keeps, and of whom: turns, limits, clients that do not read or are gone, messages at their limits. */
import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { DealerSocket } from "../../../src/protocols/zeromq/dealer_socket.ts";
import { bodyBytesMax, headerBytesMax } from "../../../src/pubsub/wire/message_limits.ts";
import { eventually } from "../../support/eventually.ts";
import { ProxyClient } from "../../support/proxy_client.ts";
import { ProxyRig, put } from "../../support/proxy_rig.ts";

setDefaultTimeout(30_000);

const rig = new ProxyRig();
afterEach(() => rig.end());

test("the largest message passes; one that costs every connection is not sent for ever", async () => {
  const { proxy, directory, client } = await rig.start({ requestTimeoutMs: 20_000 });
  const one = await rig.server("s1");
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
  expect(await say.say(put("t", 2, { version: 1 }))).toMatchObject({ status: "ERROR", headers: { unknown: true } });
  expect(proxy.counters.serversLost).toBe(5);
});

test("a client with one request does not come behind all of a client with many", async () => {
  const { directory, client } = await rig.start({ requestTimeoutMs: 20_000, limits: { windowPerServer: 2 } });
  const one = await rig.server("s1");
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
  const limits = { requestsPerClient: 3, requestsPerTopic: 4, requestsInAll: 5, bytesPerClient: 1000 };
  const { proxy, directory, client } = await rig.start({ requestTimeoutMs: 20_000, limits });
  const one = await rig.server("s1");
  directory.add(one, "t", "u");
  const held: (() => void)[] = [];
  one.behaviour = () => new Promise((resolve) => held.push(() => resolve({ status: "OK" })));
  const [a, b, c] = [client(), client(), client()];
  const asked: Promise<unknown>[] = [1, 2, 3].map((n) => a.say(put("t", n)));
  await eventually(() => proxy.inFlight.requests === 3);
  expect(await a.say(put("t", 4))).toMatchObject({
    status: "OVERLOADED",
    text: expect.stringMatching(/this connection has 3/),
  });
  asked.push(b.say(put("t", 1)));
  await eventually(() => proxy.inFlight.requests === 4);
  expect(await b.say(put("t", 2))).toMatchObject({
    status: "OVERLOADED",
    text: expect.stringMatching(/the topic "t" has 4/),
  });
  asked.push(c.say(put("u", 1)));
  await eventually(() => proxy.inFlight.requests === 5);
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
  expect([proxy.inFlight.requests, proxy.inFlight.bytes]).toEqual([0, 0]);
});

test("a client that never reads loses answers, and nobody else notices", async () => {
  const { proxy, directory, endpoint, client } = await rig.start({ requestTimeoutMs: 5000 });
  const one = await rig.server("s1");
  directory.add(one, "t");
  const body = new Uint8Array(256 << 10);
  one.behaviour = (message) => message.name === "GET" ? { status: "OK", messageId: 1, body } : { status: "OK" };
  const deaf = new DealerSocket({ receiveHighWater: 1, sendHighWater: 100_000 });
  rig.keep(deaf);
  deaf.connect(endpoint);
  const say = client();
  let sent = 0;
  await eventually(async () => {
    for (let n = 0; n < 50; n++) {
      const header = new TextEncoder().encode("GET deaf t -1\r\n\r\n");
      deaf.trySend([new TextEncoder().encode(String(sent++)), new Uint8Array(0), header]);
    }
    expect((await say.say(put("t", sent))).quietMs).toBeLessThan(2000);
    return proxy.counters.undeliveredResponses > 0;
  }, { withinMs: 20_000, what: "answers to be dropped" });
  // What waits for it is 8 MiB, and what the kernel's buffers take.
  expect((proxy.counters.responses.get("OK") ?? 0) - proxy.counters.undeliveredResponses).toBeLessThan(400);
  expect((await say.say(put("t", sent + 1))).status).toBe("OK");
});

test("a client that is gone has what it asked for forgotten, unless a server has it", async () => {
  const { proxy, directory, endpoint } = await rig.start({ requestTimeoutMs: 20_000, limits: { windowPerServer: 1 } });
  const one = await rig.server("s1");
  directory.add(one, "t");
  one.behaviour = () => null;
  const leaving = new ProxyClient(endpoint);
  for (let n = 0; n < 10; n++) leaving.say(put("t", n)).catch(() => {});
  await eventually(() => proxy.inFlight.requests === 10 && one.received.length === 1);
  leaving.withinMs = 1;
  await leaving[Symbol.asyncDispose]();
  await eventually(() => proxy.inFlight.requests === 0);
  expect(one.received.length).toBe(1);
});
