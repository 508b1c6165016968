/**
 * The library's publish/subscribe client: exactly-once puts, iteration with acknowledgements, time limits, topic
 * administration.
 */
import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { BatonError } from "../../../src/library/baton.ts";
import { PubsubClient, type PubsubClientOptions, TopicAdmin } from "../../../src/library/baton_pubsub.ts";
import { systemClock } from "../../../src/base/support/clock.ts";
import { sleep } from "../../../src/base/support/deadline.ts";
import { eventually } from "../../support/eventually.ts";
import { failureCode } from "../../support/failure_code.ts";
import { ProxyRig } from "../../support/proxy_rig.ts";
import { PubsubCluster } from "../../support/pubsub_cluster.ts";

setDefaultTimeout(60_000);

let cluster: PubsubCluster;
let topic: string;
let topics = 0;
beforeAll(async () => cluster = await PubsubCluster.start({ as: "processes", sessionTimeoutMs: 10_000 }));
afterAll(async () => await cluster?.[Symbol.asyncDispose]());
beforeEach(() => topic = `topic-${++topics}`);

const place = () => ({ servers: cluster.backend.servers });
function client(id: string, options: PubsubClientOptions = {}): PubsubClient {
  return new PubsubClient(id, {
    ...place(),
    stateDir: join(cluster.folder, "clients"),
    root: cluster.root,
    ...options,
  });
}

/** Gets and acknowledges what waits in the topic. */
async function drain(subscriber: ReturnType<PubsubClient["subscriber"]>): Promise<string[]> {
  const texts: string[] = [];
  for await (const message of subscriber.messages({ wait: 0 })) {
    texts.push(message.text());
    await message.acknowledge();
  }
  return texts;
}

test("puts that do not wait for each other arrive once each, in the order of the calls", async () => {
  await using alice = client("alice");
  await using bob = client("bob");
  await alice.subscriber(topic).subscribe();
  const sent = Array.from({ length: 1000 }, (_, index) => `message ${index}`);
  await Promise.all(sent.slice(0, 500).map((text) => bob.publisher(topic).put(text)));
  expect(await bob.publisher(topic).putAll(sent.slice(500))).toBe(500);
  expect(await drain(alice.subscriber(topic))).toEqual(sent);
  expect(await drain(alice.subscriber(topic))).toEqual([]);
});

test("putAll ends with the first failure, and stores no message after it", async () => {
  await using alice = client("alice");
  await using bob = client("bob");
  await alice.subscriber(topic).subscribe();
  const tooLong = new Uint8Array((64 << 20) + 1);
  expect(await failureCode(bob.publisher(topic).putAll(["a", "b", tooLong, "c"]))).toBe("BAD_DATA");
  expect(await drain(alice.subscriber(topic))).toEqual(["a", "b"]);
  const sent = Array.from({ length: 3000 }, (_, index) => String(index));
  async function* pausing() {
    for (const [index, text] of sent.entries()) {
      if (index === 1500) cluster.server("s1").pause();
      yield text;
      await Promise.resolve();
    }
  }
  try {
    expect(["OUTCOME_UNKNOWN", "UNREACHABLE"]).toContain(
      await failureCode(bob.publisher(topic).putAll(pausing(), { wait: 1000 })),
    );
  } finally {
    cluster.server("s1").resume();
  }
  await bob.publisher(topic).resume();
  const stored = await drain(alice.subscriber(topic));
  expect(stored).toEqual(sent.slice(0, stored.length));
  expect(stored.length).toBeLessThan(sent.length);
});

test("a put into a topic without a subscriber succeeds, and is reported", async () => {
  const problems: string[] = [];
  await using bob = client("bob", { onProblem: (sentence) => problems.push(sentence) });
  await bob.publisher(topic).putAll(["a", "b"]);
  expect(problems).toEqual([expect.stringContaining("has no subscriber")]);
});

test("a message that was not acknowledged comes again, marked, also in the next process", async () => {
  await using bob = client("bob");
  {
    await using alice = client("alice");
    await alice.subscriber(topic).subscribe();
    await bob.publisher(topic).putAll(["a", "b", "c"]);
    for await (const { id, redelivered, text } of alice.subscriber(topic).messages({ wait: 0 })) {
      expect([redelivered, text()]).toEqual([false, "a"]);
      await alice.subscriber(topic).acknowledge(id);
      break;
    }
    for await (const message of alice.subscriber(topic).messages({ wait: 0 })) {
      expect([message.redelivered, message.text()]).toEqual([false, "b"]);
      break;
    }
  }
  await using alice = client("alice");
  const [b, c] = await alice.subscriber(topic).fetch();
  expect([b?.text(), b?.redelivered, c?.text(), c?.redelivered]).toEqual(["b", true, "c", false]);
  await c?.acknowledge();
  expect(await drain(alice.subscriber(topic))).toEqual([]);
});

test("the next message is refused while one is not acknowledged, and one iteration runs at a time", async () => {
  await using alice = client("alice");
  const subscriber = alice.subscriber(topic);
  await subscriber.subscribe();
  await alice.publisher(topic).putAll(["a", "b"]);
  const messages = subscriber.messages({ wait: 0 });
  expect((await messages.next()).value?.text()).toBe("a");
  expect(await failureCode(subscriber.messages().next())).toBe("USAGE");
  expect(await failureCode(subscriber.seek("start"))).toBe("USAGE");
  expect(await failureCode(messages.next())).toBe("USAGE");
  expect(await failureCode(subscriber.acknowledge(1_000_000))).toBe("USAGE");
  expect(await drain(subscriber)).toEqual(["a", "b"]);
});

test("a put without a response has an unknown outcome, which the next put settles: both are stored once", async () => {
  await using alice = client("alice");
  await using bob = client("bob");
  await alice.subscriber(topic).subscribe();
  const publisher = bob.publisher(topic);
  await publisher.put("first");
  cluster.server("s1").pause();
  try {
    expect(await failureCode(publisher.put("second", { wait: 1500 }))).toBe("OUTCOME_UNKNOWN");
    expect(await publisher.unknownPuts()).toBe(1);
    expect(await failureCode(publisher.put("third", { wait: 1500 }))).toBe("UNREACHABLE");
  } finally {
    cluster.server("s1").resume();
  }
  await publisher.put("fourth");
  expect(await publisher.unknownPuts()).toBe(0);
  expect(await drain(alice.subscriber(topic))).toEqual(["first", "second", "fourth"]);
});

test("while a server stops again and again, each put is stored once, not at all, or unknown", async () => {
  await using alice = client("alice");
  await using bob = client("bob");
  await alice.subscriber(topic).subscribe();
  const publisher = bob.publisher(topic);
  const outcomes = new Map<string, string>();
  const trouble = new AbortController();
  const stopping = (async () => {
    const clock = systemClock();
    while (!trouble.signal.aborted) {
      cluster.server("s1").pause();
      await sleep(clock, 150 * Math.random() + 100);
      cluster.server("s1").resume();
      await sleep(clock, 100 * Math.random());
    }
  })();
  const task = async (name: string) => {
    // As many as it takes until some outcome is unknown: on a fast machine the first ones may all be stored between two
    // stops.
    const hasBoth = () => new Set(outcomes.values()).isSupersetOf(new Set(["none", "OUTCOME_UNKNOWN"]));
    for (let number = 0; number < 40 || (number < 2000 && !hasBoth()); number++) {
      const text = `${name} ${number}`;
      outcomes.set(text, await failureCode(publisher.put(text, { wait: 150 })));
    }
  };
  await Promise.all(["a", "b", "c", "d"].map(task));
  trouble.abort();
  await stopping;
  await publisher.resume();
  const stored = await drain(alice.subscriber(topic));
  const codes = new Set(outcomes.values());
  expect([...codes].filter((code) => !["none", "UNREACHABLE", "OUTCOME_UNKNOWN"].includes(code))).toEqual([]);
  expect([codes.has("none"), codes.has("OUTCOME_UNKNOWN")]).toEqual([true, true]);
  const expected = [...outcomes].filter(([, code]) => code !== "UNREACHABLE").map(([text]) => text);
  expect([...stored].sort()).toEqual(expected.sort());
});

test("a topic that refuses a message does not disturb the puts of another topic", async () => {
  await using alice = client("alice");
  await using bob = client("bob");
  await alice.subscriber(topic).subscribe();
  await bob.publisher(`${topic}-bad`).put("one", { messageId: "same" });
  const sent = Array.from({ length: 200 }, (_, index) => String(index));
  const good = Promise.all(sent.map((text) => bob.publisher(topic).put(text)));
  for (let round = 0; round < 5; round++) {
    expect(await failureCode(bob.publisher(`${topic}-bad`).put("another", { messageId: "same" }))).toBe("BAD_DATA");
  }
  await good;
  expect(await drain(alice.subscriber(topic))).toEqual(sent);
});

test("resume settles what an earlier process left unknown", async () => {
  await using alice = client("alice");
  await alice.subscriber(topic).subscribe();
  {
    await using bob = client("bob");
    await bob.publisher(topic).put("first");
    cluster.server("s1").pause();
    try {
      expect(await failureCode(bob.publisher(topic).put("second", { wait: 1500 }))).toBe("OUTCOME_UNKNOWN");
    } finally {
      cluster.server("s1").resume();
    }
  }
  await using bob = client("bob");
  expect(await bob.publisher(topic).resume()).toBe(1);
  expect(await bob.publisher(topic).resume()).toBe(0);
  await bob.publisher(topic).put("third");
  expect(await drain(alice.subscriber(topic))).toEqual(["first", "second", "third"]);
});

test("servers and proxies that are killed cost time, and no message", async () => {
  await using alice = client("alice");
  await using bob = client("bob");
  await alice.subscriber(topic).subscribe();
  const sent = Array.from({ length: 300 }, (_, index) => `message ${index}`);
  const got: string[] = [];
  const stop = new AbortController();
  const getting = (async () => {
    for await (const message of alice.subscriber(topic).messages({ signal: stop.signal })) {
      got.push(message.text());
      await message.acknowledge();
      if (got.length === sent.length) break;
    }
  })();
  for (const [index, text] of sent.entries()) {
    if (index === 100) await cluster.proxy().kill().then(() => cluster.proxy().restart());
    if (index === 200) await cluster.server("s1").kill().then(() => cluster.server("s1").restart());
    await bob.publisher(topic).put(text);
  }
  await getting;
  expect(got).toEqual(sent);
});

test("a message ID is stored once, also when another process repeats it", async () => {
  await using alice = client("alice");
  await alice.subscriber(topic).subscribe();
  for (const text of ["order 17", "order 17", "order 18"]) {
    await using bob = client("bob");
    await bob.publisher(topic).put(text, { messageId: text });
  }
  await using bob = client("bob");
  expect(await failureCode(bob.publisher(topic).put("another body", { messageId: "order 17" }))).toBe("BAD_DATA");
  expect(await drain(alice.subscriber(topic))).toEqual(["order 17", "order 18"]);
});

test("one process uses a client ID at a time; the limit of a call includes waiting for it", async () => {
  await using first = client("alice");
  await first.subscriber(topic).subscribe();
  await using second = client("alice", { wait: 300 });
  expect(await failureCode(second.subscriber(topic).subscribe())).toBe("LOCK_BUSY");
});

test("without a proxy every call is refused as unreachable, in the time of its limit", async () => {
  await using nobody = new PubsubClient("alice", {
    proxies: ["127.0.0.1:1"],
    stateDir: join(cluster.folder, "far"),
    wait: 400,
  });
  const calls = [
    () => nobody.topics(),
    () => nobody.publisher(topic).put("a"),
    () => nobody.subscriber(topic).subscribe(),
    () => nobody.subscriber(topic).fetch(),
    () => nobody.subscriber(topic).messages({ wait: 0 }).next(),
  ];
  for (const call of calls) expect(await failureCode(call())).toBe("UNREACHABLE");
});

test("an iteration waits for messages until its signal aborts, or for the time of its limit", async () => {
  await using alice = client("alice");
  expect(await failureCode(alice.subscriber(topic).messages({ wait: 0 }).next())).toBe("NOT_SUBSCRIBED");
  await alice.subscriber(topic).subscribe();
  expect(await alice.subscriber(topic).messages({ wait: 50 }).next()).toEqual({ done: true, value: undefined });
  const stop = new AbortController();
  const next = alice.subscriber(topic).messages({ signal: stop.signal }).next();
  stop.abort(new BatonError("FALSE", "enough"));
  expect(await failureCode(next)).toBe("FALSE");
});

test("a position can be moved and read, and a subscription ended", async () => {
  await using alice = client("alice");
  const subscriber = alice.subscriber(topic);
  expect(await subscriber.position()).toMatchObject({ isSubscribed: false, pending: 0 });
  await subscriber.subscribe();
  await alice.publisher(topic).putAll(["a", "b", "c"]);
  expect(await subscriber.position()).toMatchObject({ isSubscribed: true, pending: 3, subscribers: 1 });
  await subscriber.seek("end");
  expect(await drain(subscriber)).toEqual([]);
  expect(await alice.topics()).toContain(topic);
  await subscriber.unsubscribe();
  expect(await failureCode(subscriber.fetch())).toBe("NOT_SUBSCRIBED");
});

test("a closed client ends its calls, and refuses further ones", async () => {
  const alice = client("alice");
  await alice.subscriber(topic).subscribe();
  const next = alice.subscriber(topic).messages().next().catch((error: Error) => error.name);
  const stored = alice.publisher(`${topic}-other`).put("in flight");
  await alice.close();
  await stored;
  expect(await next).toBe("AbortError");
  expect(await alice.publisher(topic).put("late").catch((error: Error) => error.name)).toBe("AbortError");
});

test("topics are listed with their servers, shown, and deleted unless clients would lose messages", async () => {
  await using alice = client("alice");
  const admin = new TopicAdmin({ ...place(), root: cluster.root });
  expect(await failureCode(admin.show(topic))).toBe("NOT_FOUND");
  await alice.subscriber(topic).subscribe();
  await alice.publisher(topic).put("a");
  expect((await admin.list()).find((entry) => entry.topic === topic)).toEqual({
    topic,
    server: "s1",
    isAvailable: true,
  });
  expect(await admin.show(topic)).toMatchObject({ subscribers: 1, slowest: [{ client: "alice", pending: 1 }] });
  expect(await failureCode(admin.delete(topic))).toBe("USAGE");
  await admin.delete(topic, { acceptLoss: true });
  await eventually(async () => !(await alice.topics()).includes(topic));
});

test("names and addresses are checked before anything is opened", () => {
  expect(() => new PubsubClient("", place())).toThrow(BatonError);
  expect(() => new PubsubClient("alice", { proxies: [] })).toThrow("at least one address");
  expect(() => new PubsubClient("alice", { proxies: ["http://x"] })).toThrow(BatonError);
  expect(() => new PubsubClient("alice", { ...place(), keyFile: "alice.key" })).toThrow("serviceKeyFile");
});

/** What a program in JavaScript may pass; the types forbid it. */
const untyped = <T>(value: unknown) => value as T;

test("a message that is neither text nor bytes is refused, and nothing is stored instead of it", async () => {
  await using alice = client("alice");
  const subscriber = alice.subscriber(topic);
  await subscriber.subscribe();
  const { buffer } = new Uint8Array([65]);
  for (const wrong of [17, null, undefined, { a: 1 }, [1, 2], new Uint16Array([256]), new DataView(buffer), buffer]) {
    expect(await failureCode(alice.publisher(topic).put(untyped(wrong)))).toBe("USAGE");
  }
  expect(await failureCode(alice.publisher(topic).put("a", { messageId: untyped(5) }))).toBe("USAGE");
  await alice.publisher(topic).put(Buffer.from("a buffer"));
  expect(await drain(subscriber)).toEqual(["a buffer"]);
});

test("a wait that is no time is refused: it would never end", async () => {
  await using alice = client("alice");
  await alice.subscriber(topic).subscribe();
  for (const wait of [untyped<number>("5s"), Number.NaN, untyped<number>({})]) {
    expect(() => client("bob", { wait })).toThrow("wait is");
    expect(await failureCode(alice.publisher(topic).put("a", { wait }))).toBe("USAGE");
    expect(await failureCode(alice.subscriber(topic).fetch({ wait }))).toBe("USAGE");
    expect(await failureCode(alice.subscriber(topic).messages({ wait }).next())).toBe("USAGE");
  }
  expect(await failureCode(alice.subscriber(topic).acknowledge(untyped(undefined)))).toBe("USAGE");
  expect(() => new PubsubClient("bob", { proxies: untyped("px1:5001") })).toThrow("an array");
  expect(() => new PubsubClient("bob", untyped({ proxys: ["px1:5001"] }))).toThrow('did you mean "proxies"');
  expect(() => new PubsubClient(untyped(undefined), place())).toThrow("not a string");
});

test("a subscriber and a publisher are told of messages that a fail-over has lost", async () => {
  const rig = new ProxyRig();
  try {
    const { directory, endpoint } = await rig.start();
    const server = await rig.server("s1");
    directory.add(server, topic);
    const ids = (first: number, last: number) => [{ first, last }];
    const batch = ["a", "b"].map((text) => new TextEncoder().encode(text));
    server.behaviour = (message) => {
      if (message.name === "PUT") {
        return { status: "OK", headers: message.batch?.length === 0 ? {} : { ids: ids(9, 9), loss: "possible" } };
      }
      if (message.name !== "GET" || message.last >= 8) return { status: message.name === "GET" ? "NO_MESSAGE" : "OK" };
      return { status: "OK", messageId: 7, headers: { ids: ids(7, 8), missed: 3, loss: "certain" }, batch };
    };
    const problems: string[] = [];
    await using alice = new PubsubClient("alice", {
      proxies: [endpoint],
      stateDir: join(cluster.folder, "told"),
      onProblem: (sentence) => problems.push(sentence),
    });
    const messages = await alice.subscriber(topic).fetch();
    expect(messages.map(({ id, missed, loss }) => [id, missed, loss])).toEqual([[7, 3, "certain"], [8, 0, null]]);
    const publisher = alice.publisher(topic);
    expect(publisher.loss).toBeNull();
    await publisher.putAll(["one", "two"]);
    expect(publisher.loss).toBe("possible");
    expect(problems.filter((sentence) => /may have lost messages of topic/.test(sentence)).length).toBe(1);
  } finally {
    await rig.end();
  }
});
