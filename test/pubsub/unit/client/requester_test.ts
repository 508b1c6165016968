/** What a request ends with, by real sockets: proxies that answer, are silent, die, or are not there. */
import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { type AddressInfo, createConnection, createServer, type Socket } from "node:net";
import { RouterSocket } from "../../../../src/protocols/zeromq/router_socket.ts";
import { PubsubRequester, type PubsubRequesterOptions } from "../../../../src/pubsub/client/requester.ts";
import { systemClock } from "../../../../src/base/support/clock.ts";
import { sleep } from "../../../../src/base/support/deadline.ts";
import { decodePubsubMessage } from "../../../../src/pubsub/wire/decode_message.ts";
import { readPutOperation } from "../../../../src/pubsub/store/thread/client_request.ts";
import { encodePubsubMessage } from "../../../../src/pubsub/wire/encode_message.ts";
import type { PubsubHeaders, PubsubMessage } from "../../../../src/pubsub/wire/pubsub_messages.ts";
import type { StatusCode } from "../../../../src/pubsub/wire/status_codes.ts";
import { messagesOf } from "../../../support/messages_of.ts";
import { bytesOf } from "../../../support/pubsub_talker.ts";

setDefaultTimeout(30_000);

const open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one[Symbol.asyncDispose]();
});

type Said =
  | StatusCode
  | "nothing"
  | { readonly status: StatusCode; readonly headers: PubsubHeaders; readonly body?: Uint8Array };

/** Answers what it is told to, the last for ever. */
class FakeProxy implements AsyncDisposable {
  readonly heard: PubsubMessage[] = [];
  readonly frames: Uint8Array[][] = [];
  /** How long an answer takes. */
  delayMs = 0;
  readonly #cancels: (() => void)[] = [];
  readonly #socket = new RouterSocket();
  readonly #answers: Said[];
  endpoint = "";

  static async start(...answers: Said[]): Promise<FakeProxy> {
    const proxy = new FakeProxy(answers);
    proxy.endpoint = await proxy.#socket.bind("tcp://127.0.0.1:0");
    void proxy.#serve();
    open.push(proxy);
    return proxy;
  }

  private constructor(answers: Said[]) {
    this.#answers = answers;
  }

  async #serve(): Promise<void> {
    for await (const frames of messagesOf(this.#socket)) {
      const at = frames.findIndex((frame) => frame.byteLength === 0);
      this.frames.push(frames.slice(at + 1));
      const message = decodePubsubMessage(frames.slice(at + 1));
      if (message.name === null) throw new Error(message.reason);
      this.heard.push(message);
      const said = (this.#answers.length > 1 ? this.#answers.shift() : this.#answers[0]) ?? "nothing";
      if (said === "nothing") continue;
      const response = encodePubsubMessage({
        ...{ name: "STATUS", sender: "fake" },
        ...(typeof said === "string" ? { status: said, headers: {} } : said),
      });
      const reply = () => void this.#socket.trySend([...frames.slice(0, at + 1), ...response]);
      if (this.delayMs === 0) reply();
      else this.#cancels.push(systemClock().startTimer(this.delayMs, reply));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const cancel of this.#cancels) cancel();
    await this.#socket.close({ lingerMs: 0 });
  }
}

function requester(endpoints: readonly string[], options: Partial<PubsubRequesterOptions> = {}): PubsubRequester {
  const made = new PubsubRequester({
    findProxies: () => Promise.resolve(endpoints),
    clock: systemClock(),
    timeoutMs: 3000,
    attemptMs: 200,
    ...options,
  });
  open.push(made);
  return made;
}

const put = (counter = 1) => ({ name: "PUT", sender: "bob", topic: "news", counter, body: new Uint8Array(3) }) as const;
const get = { name: "GET", sender: "bob", topic: "news", last: -1 } as const;

test("a silent proxy, and one that is not there, cost a try each, and the next one is asked", async () => {
  const silent = await FakeProxy.start("nothing");
  const good = await FakeProxy.start("OK");
  const nobody = await FakeProxy.start();
  await nobody[Symbol.asyncDispose]();
  const outcome = await requester([nobody.endpoint, silent.endpoint, good.endpoint]).request(put());
  expect(outcome).toMatchObject({ kind: "response", response: { status: "OK" } });
  expect([silent.heard.length, good.heard.length]).toEqual([1, 1]);
  const first = silent.heard[0];
  const second = good.heard[0];
  expect({ ...first, headers: null }).toEqual({ ...second, headers: null } as never);
});

test("a put with the headers of a session is decoded in the quick way", async () => {
  const proxy = await FakeProxy.start("OK");
  const headers = { session: { number: 2, key: "k" }, registration: 7, firstUnacked: 3, after: 4 };
  await requester([proxy.endpoint]).request({ ...put(5), headers });
  const [[frame = new Uint8Array(0), ...more] = []] = proxy.frames;
  expect(more).toEqual([]);
  expect(readPutOperation([frame], { ticket: 1, epoch: 1 })).toMatchObject({ counter: 5, ...headers });
});

test("what was refused for now is asked again at the same proxy", async () => {
  const proxy = await FakeProxy.start("OVERLOADED", "NOT_OWNER", "OK");
  expect(await requester([proxy.endpoint]).request(put())).toMatchObject({
    kind: "response",
    response: { status: "OK" },
  });
  expect(proxy.heard.length).toBe(3);
});

test("a proxy that goes on refusing is left for the next one, and what is under way there is still heard", async () => {
  const busy = await FakeProxy.start("OVERLOADED");
  const good = await FakeProxy.start("OK");
  const asking = requester([busy.endpoint, good.endpoint]);
  const outcomes = await Promise.all([1, 2, 3, 4].map((counter) => asking.request(put(counter))));
  expect(outcomes.map(({ kind }) => kind)).toEqual(["response", "response", "response", "response"]);
  expect(good.heard.length).toBe(4);
});

test("only definite answers make a definite failure; a silent try makes it unknown, but for a get", async () => {
  const busy = await FakeProxy.start("OVERLOADED");
  const silent = await FakeProxy.start("nothing");
  const options = { timeoutMs: 500, attemptMs: 100 };
  expect(await requester([busy.endpoint], options).request(put())).toMatchObject({ kind: "fail" });
  expect(await requester([silent.endpoint], options).request(put())).toMatchObject({ kind: "unknown" });
  expect(await requester([silent.endpoint], options).request(get)).toMatchObject({ kind: "fail" });
  const doubtful = await FakeProxy.start({ status: "ERROR", headers: { unknown: true } }, "OVERLOADED");
  expect(await requester([doubtful.endpoint], options).request(put())).toMatchObject({ kind: "unknown" });
  const full = await FakeProxy.start({ status: "ERROR", headers: { unknown: true } }, "FULL");
  expect(await requester([full.endpoint], options).request(put())).toMatchObject({ kind: "unknown" });
  expect(await requester([], options).request(put())).toMatchObject({
    kind: "fail",
    why: expect.stringContaining("no proxy"),
  });
});

test("a connection that is lost under way is not taken for a response", async () => {
  const dying = await FakeProxy.start("nothing");
  const good = await FakeProxy.start("FULL");
  const asked = requester([dying.endpoint, good.endpoint], { attemptMs: 2000 }).request(put());
  while (dying.heard.length === 0) await new Promise((resolve) => setImmediate(resolve));
  await dying[Symbol.asyncDispose]();
  expect(await asked).toMatchObject({ kind: "unknown" });
});

test("many requests at once have their own answers, and a signal ends those that wait", async () => {
  const proxy = await FakeProxy.start("OK");
  const asking = requester([proxy.endpoint]);
  const outcomes = await Promise.all(Array.from({ length: 300 }, (_, place) => asking.request(put(place + 1))));
  expect(outcomes.every((outcome) => outcome.kind === "response")).toBe(true);
  expect(new Set(proxy.heard.map((message) => message.name === "PUT" && message.counter)).size).toBe(300);
  const silent = await FakeProxy.start("nothing");
  const abort = new AbortController();
  const asked = requester([silent.endpoint]).request(put(), { signal: abort.signal });
  abort.abort(new Error("enough"));
  await expect(asked).rejects.toThrow("enough");
});

test("a wait for a message leaves its response time, and is cut when the time runs out", async () => {
  const times = async (timeoutMs: number, holdMs: number, ...said: Said[]) => {
    const proxy = await FakeProxy.start(...said);
    const asked = { ...get, headers: { waitMs: holdMs } };
    const { kind } = await requester([proxy.endpoint], { timeoutMs, attemptMs: 100 }).request(asked, {
      holdMs,
    });
    const heard = proxy.heard.map(({ headers }) => [headers?.waitMs ?? -1, headers?.deadlineMs ?? -1] as const);
    return { kind, heard };
  };
  expect(await times(3000, 1000, "NO_MESSAGE")).toEqual({ kind: "response", heard: [[1000, 1075]] });
  const { kind, heard } = await times(1000, 1000, "nothing", "NO_MESSAGE");
  expect([kind, heard.length, heard[0]]).toEqual(["response", 2, [1000, 1075]]);
  const [waitMs = -1, deadlineMs = -1] = heard[1] ?? [];
  expect(waitMs).toBeWithin(0, 900);
  expect(deadlineMs).toBeWithin(waitMs + 50, 1000);
});

test("what stands in the way is told once, when it has for a while, and again after a response", async () => {
  const told: string[] = [];
  const proxies: string[] = [];
  const options = { findProxies: () => Promise.resolve(proxies), onStall: (why: string) => void told.push(why) };
  const asking = requester([], { ...options, timeoutMs: 1500, attemptMs: 600, stallMs: 300 });
  const outcomes = await Promise.all([asking.request(put()), asking.request(put(2))]);
  expect(outcomes.map(({ kind }) => kind)).toEqual(["fail", "fail"]);
  expect(told).toEqual([
    expect.stringContaining("no proxy is running; to start the service on this machine: baton pubsub serve"),
  ]);
  const proxy = await FakeProxy.start("OVERLOADED", "OK", "nothing");
  proxies.push(proxy.endpoint);
  expect(await asking.request(put(3))).toMatchObject({ kind: "response" });
  expect(told.length).toBe(1);
  expect(await asking.request(put(4))).toMatchObject({ kind: "unknown" });
  expect(told.slice(1)).toEqual([
    `no response has come through ${proxy.endpoint} yet; if a server is offline, baton doctor names it`,
  ]);
});

test("a request that was not done says why, without the status", async () => {
  const body = bytesOf('Not done: server "s1", which owns topic "t", is not connected');
  const proxy = await FakeProxy.start({ status: "OVERLOADED", headers: {}, body });
  expect(await requester([proxy.endpoint], { timeoutMs: 300, attemptMs: 100 }).request(put())).toMatchObject({
    kind: "fail",
    why: 'server "s1", which owns topic "t", is not connected',
  });
});

test("a look for proxies that takes long is told; a response that is held back on purpose is no trouble", async () => {
  const told: string[] = [];
  const options = { lookupPlace: () => "at the moon", stallMs: 100, onStall: (why: string) => void told.push(why) };
  const never = requester([], { ...options, timeoutMs: 600, findProxies: () => new Promise(() => {}) });
  expect(await never.request(put())).toMatchObject({ kind: "fail" });
  expect(told.splice(0)).toEqual(["the proxies are being looked up at the moon, without a response yet"]);
  const silent = await FakeProxy.start("nothing");
  const good = await FakeProxy.start("NO_MESSAGE");
  const asking = requester([silent.endpoint, good.endpoint], { ...options, attemptMs: 100, stallMs: 1000 });
  const asked = asking.request({ ...get, headers: { waitMs: 1200 } }, { holdMs: 1200 });
  expect(await asked).toMatchObject({ kind: "response" });
  expect([silent.heard.length, good.heard.length]).toEqual([1, 1]);
  expect(told).toEqual([]);
});

test("a proxy whose name has no address is told with the reason, also during the next try to connect", async () => {
  const told: string[] = [];
  const stop = new AbortController();
  const onStall = (why: string) => {
    told.push(why);
    stop.abort(new Error("told"));
  };
  const options = { stallMs: 700, timeoutMs: 60_000, onStall };
  const ended = requester(["tcp://no-such-host.invalid:1"], options).request(put(), { signal: stop.signal });
  expect(await ended.catch((error: unknown) => error)).toEqual(new Error("told"));
  expect(told).toEqual([
    expect.stringMatching(/no-such-host\.invalid:1: .*(no such host name|the name server does not respond)/),
  ]);
});

test("tries are as many as were allowed", async () => {
  const proxy = await FakeProxy.start("OVERLOADED");
  expect(await requester([proxy.endpoint], { retriesMax: 3 }).request(put())).toMatchObject({ kind: "fail" });
  expect(proxy.heard.length).toBe(4);
});

test("what takes longer than a try, as a long message on a slow way, is waited for longer each time", async () => {
  const slow = await Promise.all([FakeProxy.start("OK"), FakeProxy.start("OK")]);
  for (const proxy of slow) proxy.delayMs = 250;
  const endpoints = slow.map(({ endpoint }) => endpoint);
  const options = { timeoutMs: 10_000, attemptMs: 100 };
  for (const message of [put(), get]) {
    expect(await requester(endpoints, options).request(message)).toMatchObject({ kind: "response" });
  }
  // Who says how many tries there are to be has each of them as long as he said.
  expect(await requester(endpoints, { ...options, retriesMax: 5 }).request(put())).toMatchObject({ kind: "unknown" });
});

test("the only proxy's connection is waited for, however slowly it comes about", async () => {
  const proxy = await FakeProxy.start("OK");
  // Passes on what the client says only after longer than a connection is waited for where there are others.
  const sockets: Socket[] = [];
  const slow = createServer((from) => {
    const to = createConnection(Number(new URL(proxy.endpoint).port), "127.0.0.1");
    to.pipe(from);
    from.on("error", () => {});
    to.on("error", () => {});
    setTimeout(() => from.pipe(to), 2300);
    sockets.push(from, to);
  });
  await new Promise<void>((done) => slow.listen(0, "127.0.0.1", done));
  const requester = new PubsubRequester({
    findProxies: () => Promise.resolve([`tcp://127.0.0.1:${(slow.address() as AddressInfo).port}`]),
    clock: systemClock(),
    timeoutMs: 15_000,
    attemptMs: 3000,
  });
  const close = () => {
    for (const socket of sockets) socket.destroy();
    return new Promise<void>((done) => void slow.close(() => done()));
  };
  open.push({ [Symbol.asyncDispose]: close }, requester);
  const outcome = await requester.request({ name: "PUT", sender: "bob", topic: "news", counter: 1, headers: {} });
  expect(outcome.kind).toBe("response");
  expect(sockets).toHaveLength(2);
});

test("proxies that are found late have only the time that is left, and are not asked when none is", async () => {
  const proxy = await FakeProxy.start("nothing");
  const findIn = (ms: number) => async () => {
    await sleep(systemClock(), ms);
    return [proxy.endpoint];
  };
  const options = { timeoutMs: 2000, attemptMs: 2000, findProxies: findIn(1500) };
  expect(await requester([], options).request(get)).toMatchObject({ kind: "fail" });
  expect(proxy.heard.map(({ headers }) => Math.sign((headers?.deadlineMs ?? Infinity) - 500))).toEqual([-1]);
  expect(await requester([], { ...options, timeoutMs: 1580 }).request(put())).toMatchObject({
    kind: "fail",
    why: expect.stringContaining("no time was left"),
  });
  expect(proxy.heard.length).toBe(1);
});
