/**
 * A client that is killed before each of its steps on the disk, with what it has not synced lost or not: each message becomes a
 * file once, and each line is put once. `BATON_DOSE=full` goes through every step.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { isFullDose } from "../support/dose.ts";
import { FaultyClient } from "../support/faulty_client.ts";
import { describeWithPeer } from "../support/peers.ts";
import type { ProxyClient } from "../support/proxy_client.ts";
import { PubsubCluster } from "../support/pubsub_cluster.ts";
import { seededRandom } from "../support/random.ts";

setDefaultTimeout(600_000);

const seed = Number(process.env["BATON_SEED"] ?? (Math.random() * 0x7fffffff) | 0);
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
    const stride = isFullDose ? 1 : 6;
    for (let first = 1 + Math.floor(random() * stride); first < stepsMax; first += stride * roundsAtOnce) {
      const some = Array.from({ length: roundsAtOnce }, (_, place) => first + place * stride);
      const killed = await Promise.all(some.map(round));
      steps += killed.filter(Boolean).length;
      if (killed.includes(false)) break;
    }
    console.log(`${what}: killed at ${steps} steps`);
    expect(steps).toBeGreaterThan(isFullDose ? 40 : 6);
  }

  const get = (client: FaultyClient, topic: string) =>
    client.run("get", topic, "--until-empty", "--out-dir", client.inbox);

  for (const losesPower of [false, true]) {
    const end = losesPower ? "and the power is lost" : "and a consumer takes the files away at once";
    test(`get --out-dir is killed before each step, ${end}: each message is a file once`, async () => {
      await everyStep(`get --out-dir, ${end}`, async (step) => {
        const topic = `in ${++topics}`;
        using client = new FaultyClient("alice", cluster.proxy().endpoint);
        await subscribe("alice", topic);
        for (const [place, body] of bodies.entries()) {
          await say.say({ name: "PUT", sender: "bob", topic, counter: place + 1, body: encode(body) });
        }
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
      const topic = `out ${++topics}`;
      await subscribe("reader", topic);
      using client = new FaultyClient("bob", cluster.proxy().endpoint);
      const lines = join(client.faults.under, "..", "lines");
      writeFileSync(lines, `${bodies.join("\n")}\n`);
      const put = () => client.run("put", topic, "--lines", lines, "--resume", "--quiet");
      client.faults.killAt(step);
      const first = await put();
      client.faults.losePower(random() < 0.5 ? undefined : random);
      client.faults.killAt(0);
      const last = await put();
      expect([step, last]).toEqual([step, { code: 0, signal: null, stderr: "" }]);
      const found: string[] = [];
      for (let at = -1;;) {
        const { status, text, messageId } = await say.say({ name: "GET", sender: "reader", topic, last: at });
        if (status !== "OK") break;
        found.push(text);
        at = messageId ?? at;
      }
      expect([step, ...found]).toEqual([step, ...bodies]);
      return first.signal !== null;
    });
  });
});
