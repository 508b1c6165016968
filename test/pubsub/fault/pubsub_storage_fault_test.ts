/**
 * A server whose storage loses what was not synced, at every step, and takes no more or fails: what was answered OK is
 * there, once, under the id that was said. `BATON_DOSE=full` goes through every step of the start and of the work.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectToZooKeeper } from "../../../src/protocols/zookeeper/zookeeper_client.ts";
import { parseZooKeeperServers } from "../../../src/protocols/zookeeper/hosts.ts";
import { PubsubPath } from "../../../src/pubsub/ownership/pubsub_path.ts";
import { verifyTopicStore } from "../../../src/pubsub/store/sqlite/verify_topic_store.ts";
import { dose, isFullDose } from "../../support/dose.ts";
import { eventually } from "../../support/eventually.ts";
import { FaultyServer } from "../../support/faulty_server.ts";
import { startKeeperProcess } from "../../support/keeper_server.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { bytesOf, PubsubTalker } from "../../support/pubsub_talker.ts";
import { seededRandom, shuffled, someSteps, testSeed } from "../../support/random.ts";
import { type Fault } from "../../support/storage_faults/storage_faults.ts";
import { TopicTraffic } from "../../support/topic_traffic.ts";

setDefaultTimeout(1_200_000);

const seed = testSeed();

/** A keeper, a server, and clients at work. */
async function atWork(
  work: (server: FaultyServer, traffic: TopicTraffic) => Promise<void>,
  atTheStart?: Fault,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "baton-storage-"));
  const backend = await startKeeperProcess();
  const zk = await connectToZooKeeper({ servers: parseZooKeeperServers(backend.servers) });
  const server = new FaultyServer("s1", folder, backend.servers);
  const say = await PubsubTalker.start(zk, new PubsubPath("/baton"));
  say.attemptMs = 400;
  try {
    if (atTheStart !== undefined) {
      server.faults.fail(atTheStart);
      await server.start();
      await eventually(() => server.faults.hits > 0 || !server.alive, { withinMs: 20_000, what: "the fault" });
    } else await server.start();
    const traffic = new TopicTraffic(say, "news");
    await traffic.begin(["p", "q", "r"]);
    await work(server, traffic);
  } finally {
    await say[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
    await zk.close();
    await backend.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function goOn(traffic: TopicTraffic, answers = 15): Promise<void> {
  const wanted = traffic.answered + answers;
  await eventually(() => traffic.answered >= wanted, { withinMs: 60_000, what: "requests to be answered" });
}

describeWithPeer("cc", `a server whose storage fails it [BATON_SEED=${seed}]`, () => {
  const random = seededRandom(seed);
  const pick = (count: number, last: number) => someSteps(random, isFullDose ? last : count, last);

  test("after a kill at each durable step, without unsynced writes, nothing that was answered is lost", async () => {
    await atWork(async (server, traffic) => {
      const { faults } = server;
      const lost = { writes: 0, torn: 0, names: 0 };
      const loseAll = () => {
        const { writes, torn, names } = faults.losePower(random() < 0.3 ? undefined : random);
        lost.writes += writes;
        lost.torn += torn;
        lost.names += names;
      };
      for (const step of pick(4, isFullDose ? 200 : 120)) {
        void traffic.subscribe(`late ${step}`).catch(() => {});
        faults.killAt(step);
        await server.ended();
        loseAll();
        faults.killAt(0);
        expect(await server.start()).toBe(true);
        await goOn(traffic);
      }
      let starts = 0;
      for (const step of pick(4, isFullDose ? 200 : 25)) {
        await server.kill();
        loseAll();
        faults.killAt(step);
        const hasStarted = await server.start();
        if (hasStarted) await server.ended();
        else starts++;
        loseAll();
        faults.killAt(0);
        expect(await server.start()).toBe(true);
        await goOn(traffic);
        if (hasStarted && isFullDose) break; // the start has no more steps
      }
      expect(await traffic.finish()).toEqual([]);
      await server.stop();
      expect(verifyTopicStore(server.dataDir).problems).toEqual([]);
      console.log(`${traffic.puts} puts; ${starts} kills at the start; ${JSON.stringify(lost)} lost`);
    });
  });

  test("killed at each durable step of its first start: it starts, and serves", async () => {
    const folder = mkdtempSync(join(tmpdir(), "baton-storage-"));
    const backend = await startKeeperProcess();
    const zk = await connectToZooKeeper({ servers: parseZooKeeperServers(backend.servers) });
    await using say = await PubsubTalker.start(zk, new PubsubPath("/baton"));
    try {
      for (const step of pick(4, isFullDose ? 200 : 40)) {
        await using server = new FaultyServer(`s${step}`, folder, backend.servers);
        server.faults.killAt(step);
        const hasStarted = await server.start();
        if (hasStarted) await server.kill();
        server.faults.losePower(random() < 0.5 ? undefined : random);
        server.faults.killAt(0);
        expect([step, await server.start(), server.output]).toEqual([step, true, expect.any(String)]);
        const topic = `topic ${step}`;
        expect((await say.ask({ name: "SUBSCRIBE", sender: "alice", topic })).status).toBe("OK");
        await server.stop();
        if (hasStarted) break;
      }
    } finally {
      await zk.close();
      await backend.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test("puts that come together share a sync, and none is answered without one", async () => {
    const folder = mkdtempSync(join(tmpdir(), "baton-storage-"));
    const backend = await startKeeperProcess();
    const zk = await connectToZooKeeper({ servers: parseZooKeeperServers(backend.servers) });
    await using say = await PubsubTalker.start(zk, new PubsubPath("/baton"));
    await using server = new FaultyServer("s1", folder, backend.servers);
    await server.start();
    const topic = "news";
    await say.ask({ name: "SUBSCRIBE", sender: "alice", topic });
    const before = server.faults.count("sync");
    await say.ask({ name: "PUT", sender: "p", topic, counter: 1, body: bytesOf("x") });
    const single = server.faults.count("sync");
    expect(single).toBeGreaterThan(before);
    const puts = Array.from({ length: 200 }, (_, place) => `q${place}`);
    await Promise.all(puts.map((sender) => say.ask({ name: "PUT", sender, topic, counter: 1, body: bytesOf(sender) })));
    expect(server.faults.count("sync") - single).toBeLessThan(puts.length / 2);
    await zk.close();
    await backend.close();
    await server.kill();
    rmSync(folder, { recursive: true, force: true });
  });

  test("a server that answers before it has synced is caught", async () => {
    await atWork(async (server, traffic) => {
      await goOn(traffic);
      // What is lost of its start it would see itself.
      server.settle();
      server.faults.syncsLie = true;
      await goOn(traffic, 30);
      await server.kill();
      server.faults.losePower();
      server.faults.syncsLie = false;
      // The index that SQLite keeps beside the log shows the loss; without it only the clients know.
      expect(await server.start()).toBe(false);
      expect(server.output).toContain("the log is damaged");
      rmSync(join(server.dataDir, "topics.sqlite-shm"));
      expect(await server.start()).toBe(true);
      // A reader may be beyond what is left.
      const problems = await traffic.finish().catch((thrown: Error) => [thrown.message]);
      expect(problems.join("; ")).toMatch(/was given to|misses|does not exist/);
    });
  });

  const log = "topics.sqlite-wal";
  const noRoom: readonly (readonly [string, Fault])[] = [
    ["no room for the log", { calls: ["write"], error: "ENOSPC", path: log }],
    ["room for a part of it", { calls: ["write"], error: "ENOSPC", path: log, isShort: true, skip: 7 }],
    ["no room in the database", { calls: ["write"], error: "ENOSPC", path: "topics.sqlite" }],
  ];
  for (const [what, fault] of isFullDose ? noRoom : shuffled(noRoom, random).slice(0, 2)) {
    test(`${what}: the server goes on, refuses what it cannot store, and stores it later`, async () => {
      await atWork(async (server, traffic) => {
        const { faults, pid } = server;
        await goOn(traffic);
        const late: Promise<void>[] = [];
        for (let time = 0; time < dose({ gate: 2, full: 8 }); time++) {
          const before = faults.hits;
          faults.fail({ ...fault, skip: Math.floor(random() * 10) });
          late.push(traffic.subscribe(`late ${time}`));
          await eventually(() => faults.hits > before + 2, { withinMs: 20_000, what: "what it has no room for" });
          faults.fail();
          await goOn(traffic);
        }
        await Promise.all(late);
        expect([server.alive, server.pid]).toEqual([true, pid]);
        // What is refused is not there after a loss of power, and what was answered is.
        await server.kill();
        faults.losePower(random);
        expect(await server.start()).toBe(true);
        await goOn(traffic);
        expect(await traffic.finish()).toEqual([]);
      });
    });
  }

  const cases: readonly (readonly [string, Fault, RegExp])[] = [
    ["a log that cannot be written", { calls: ["write"], error: "EIO", path: log, skip: 2 }, /disk I\/O error/],
    ["a log that cannot be synced", { calls: ["sync"], error: "EIO", path: log, times: 1 }, /disk I\/O error/],
    [
      "a log that has no room when it is synced",
      { calls: ["sync"], error: "ENOSPC", path: log, times: 1 },
      /disk I\/O error/,
    ],
    ["a database that cannot be synced", { calls: ["sync"], error: "EIO", path: "topics.sqlite" }, /disk I\/O error/],
  ];
  for (const [what, fault, sentence] of isFullDose ? cases : shuffled(cases, random).slice(0, 2)) {
    test(`${what}: the server says so and ends with 74, and what was answered is there afterwards`, async () => {
      await atWork(async (server, traffic) => {
        const { faults } = server;
        await goOn(traffic);
        faults.fail(fault);
        await server.ended();
        expect(server.exitCode).toBe(74);
        expect(server.output).toMatch(sentence);
        faults.losePower(random);
        faults.fail();
        expect(await server.start()).toBe(true);
        await goOn(traffic);
        expect(await traffic.finish()).toEqual([]);
      });
    });
  }

  test("no room beyond what is needed now: the server goes on", async () => {
    await atWork(async (server, traffic) => {
      expect(server.faults.hits).toBeGreaterThan(0);
      await goOn(traffic);
      expect(await traffic.finish()).toEqual([]);
    }, { calls: ["write"], error: "ENOSPC", leastBytes: 1 << 20 });
  });

  test("a disk that takes nothing: the server does not start, and says why", async () => {
    const folder = mkdtempSync(join(tmpdir(), "baton-storage-"));
    const backend = await startKeeperProcess();
    const server = new FaultyServer("s1", folder, backend.servers);
    try {
      server.faults.fail({ calls: ["write", "folder"], error: "ENOSPC" });
      expect(await server.start()).toBe(false);
      expect([server.exitCode, server.output]).toEqual([73, expect.stringContaining("no space left on device")]);
      server.faults.fail({ calls: ["write"], error: "ENOSPC" });
      expect(await server.start()).toBe(false);
      expect([server.exitCode, server.output]).toEqual([74, expect.stringContaining("disk is full")]);
    } finally {
      await server[Symbol.asyncDispose]();
      await backend.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
