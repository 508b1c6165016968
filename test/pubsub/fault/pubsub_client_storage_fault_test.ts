/**
 * A client that is killed before each of its steps on the disk, with what it has not synced lost or not: each message
 * becomes a file once, and each line is put once. `BATON_DOSE=full` goes through every step.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { isFullDose } from "../../support/dose.ts";
import { FaultyClient } from "../../support/faulty_client.ts";
import { describeWithPeer } from "../../support/peers.ts";
import type { ProxyClient } from "../../support/proxy_client.ts";
import { PubsubCluster } from "../../support/pubsub_cluster.ts";
import { seededRandom, shuffled, testSeed } from "../../support/random.ts";
import type { Fault } from "../../support/storage_faults/storage_faults.ts";

setDefaultTimeout(600_000);

const seed = testSeed();
const stepsMax = 400;
const roundsAtOnce = 2;
const bodies = ["first", "second", "third"];

describeWithPeer("cc", `a client whose storage fails it [BATON_SEED=${seed}]`, () => {
  const random = seededRandom(seed);
  let cluster: PubsubCluster;
  let say: ProxyClient;
  beforeAll(async () => {
    cluster = await PubsubCluster.start();
    say = cluster.client();
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  const encode = (text: string) => new TextEncoder().encode(text);
  const subscribe = async (sender: string, topic: string) => {
    expect((await say.say({ name: "SUBSCRIBE", sender, topic })).status).toBe("OK");
  };
  let topics = 0;

  /** The gate's steps are some of them, and others each time. */
  async function everyStep(what: string, round: (step: number) => Promise<boolean>): Promise<void> {
    let steps = 0;
    const stride = isFullDose ? 1 : 10;
    for (let first = 1 + Math.floor(random() * stride); first < stepsMax; first += stride * roundsAtOnce) {
      const some = Array.from({ length: roundsAtOnce }, (_, place) => first + place * stride);
      const killed = await Promise.all(some.map(round));
      steps += killed.filter(Boolean).length;
      if (killed.includes(false)) break;
    }
    console.log(`${what}: killed at ${steps} steps`);
    expect(steps).toBeGreaterThan(isFullDose ? 40 : 4);
  }

  const get = (client: FaultyClient, topic: string) =>
    client.run("get", topic, "--until-empty", "--out-dir", client.inbox);

  /** A topic of which alice has had nothing, and three messages are there. */
  async function somethingToGet(): Promise<string> {
    const topic = `in ${++topics}`;
    await subscribe("alice", topic);
    for (const [place, body] of bodies.entries()) {
      await say.say({ name: "PUT", sender: "bob", topic, counter: place + 1, body: encode(body) });
    }
    return topic;
  }

  /** A topic with a subscriber, and a client that puts three lines into it. */
  async function linesToPut() {
    const topic = `out ${++topics}`;
    await subscribe("reader", topic);
    const client = new FaultyClient("bob", cluster.proxy().endpoint);
    const lines = join(client.faults.under, "..", "lines");
    writeFileSync(lines, `${bodies.join("\n")}\n`);
    return { client, topic, put: () => client.run("put", topic, "--lines", lines, "--resume", "--quiet") };
  }

  async function whatTheReaderHas(topic: string): Promise<string[]> {
    const found: string[] = [];
    for (let last = -1;;) {
      const { status, text, messageId } = await say.say({ name: "GET", sender: "reader", topic, last });
      if (status !== "OK") return found;
      found.push(text);
      last = messageId ?? last;
    }
  }

  for (const losesPower of [false, true]) {
    const end = losesPower ? "and the power is lost" : "and a consumer takes the files away at once";
    test(`get --out-dir is killed before each step, ${end}: each message is a file once`, async () => {
      await everyStep(`get --out-dir, ${end}`, async (step) => {
        const topic = await somethingToGet();
        using client = new FaultyClient("alice", cluster.proxy().endpoint);
        client.faults.killAt(step);
        const first = await get(client, topic);
        const found = client.take({ away: !losesPower });
        if (losesPower) client.faults.losePower(random() < 0.5 ? undefined : random);
        // The recovery is cut as well.
        client.faults.killAt(random() < 0.5 ? 0 : 1 + Math.floor(random() * 30));
        await get(client, topic);
        if (!losesPower) found.push(...client.take({ away: true }));
        else client.faults.losePower(random);
        client.faults.killAt(0);
        expect([step, await get(client, topic)]).toEqual([step, { code: 0, signal: null, stderr: "" }]);
        if (losesPower) found.splice(0);
        found.push(...client.take({ away: true }));
        await get(client, topic);
        found.push(...client.take({ away: true }));
        expect([step, ...found]).toEqual([step, ...bodies]);
        return first.signal !== null;
      });
    });
  }

  test("put --lines --resume is killed before each step, and the power is lost: each line is put once", async () => {
    await everyStep("put --lines --resume", async (step) => {
      const { client, topic, put } = await linesToPut();
      using _client = client;
      client.faults.killAt(step);
      const first = await put();
      client.faults.losePower(random() < 0.5 ? undefined : random);
      client.faults.killAt(0);
      const last = await put();
      expect([step, last]).toEqual([step, { code: 0, signal: null, stderr: "" }]);
      expect([step, ...await whatTheReaderHas(topic)]).toEqual([step, ...bodies]);
      return first.signal !== null;
    });
  });

  const state = ".sqlite-wal";
  const full = { calls: ["write"], error: "ENOSPC" } as const;
  const bad = { calls: ["sync"], error: "EIO" } as const;

  const gets: readonly (readonly [string, Fault])[] = [
    ["no room for a message", { ...full, path: ".part", skip: 1 }],
    ["no room for a file", { calls: ["create"], error: "ENOSPC", path: "2.part" }],
    ["a message that cannot be synced", { ...bad, path: "3.part" }],
    ["a folder that cannot be synced", { ...bad, path: "/inbox", skip: 2 }],
    ["a file that cannot be renamed", { calls: ["rename"], error: "EIO", path: "/2" }],
    ["no room for the state", { ...full, path: state, skip: 12, isShort: true }],
    ["a state that cannot be synced", { ...bad, path: state, skip: 3 }],
  ];
  const some = <T>(items: readonly T[], count: number) => isFullDose ? items : shuffled(items, random).slice(0, count);
  for (const [what, fault] of some(gets, 3)) {
    test(`get --out-dir, ${what}: 74, and later each message is a file once`, async () => {
      const topic = await somethingToGet();
      using client = new FaultyClient("alice", cluster.proxy().endpoint);
      client.faults.fail(fault);
      expect(await get(client, topic)).toMatchObject({
        code: 74,
        stderr: expect.stringMatching(/^baton: Cannot .+\n$/),
      });
      expect(client.faults.hits).toBeGreaterThan(0);
      const found = client.take({ away: true });
      client.faults.fail();
      expect(await get(client, topic)).toEqual({ code: 0, signal: null, stderr: "" });
      found.push(...client.take({ away: true }));
      expect(found).toEqual(bodies);
    });
  }

  const puts: readonly (readonly [string, Fault])[] = [
    ["no room for the state", { ...full, path: state, skip: 12 }],
    ["a state that cannot be synced", { ...bad, path: state, skip: 3 }],
  ];
  for (const [what, fault] of some(puts, 1)) {
    test(`put, ${what}: 74, and each line is put once when there is nothing wrong any more`, async () => {
      const { client, topic, put } = await linesToPut();
      using _client = client;
      client.faults.fail(fault);
      expect(await put()).toMatchObject({ code: 74, stderr: expect.stringMatching(/^baton: Cannot .+\n$/) });
      client.faults.losePower(random);
      client.faults.fail();
      expect(await put()).toMatchObject({ code: 0 });
      expect(await whatTheReaderHas(topic)).toEqual(bodies);
    });
  }
});
