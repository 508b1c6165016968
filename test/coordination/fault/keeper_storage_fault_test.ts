/**
 * A keeper whose storage loses what was not synced, at every step, and takes no more or fails: what was acknowledged is
 * there, with its sessions, and transaction ids never go back. `BATON_DOSE=full` goes through every step of the start
 * and of the work.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { createFlag } from "../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { node } from "../conformance/zookeeper_fixture.ts";
import { isFullDose } from "../../support/dose.ts";
import { eventually } from "../../support/eventually.ts";
import { FaultyKeeper } from "../../support/faulty_keeper.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { seededRandom, shuffled, someSteps, testSeed } from "../../support/random.ts";
import { RawClient } from "../../support/raw_client.ts";
import type { Fault } from "../../support/storage_faults/storage_faults.ts";

setDefaultTimeout(1_200_000);

const seed = testSeed();
const writers = 4;
const sessionMs = 60_000;

interface Acknowledged {
  readonly zxid: bigint;
  /** Null for a node that stays when its session ends. */
  readonly session: bigint | null;
}

/** Clients that make and delete nodes, and remember what was acknowledged. */
class NodeTraffic {
  readonly #keeper: FaultyKeeper;
  readonly #there = new Map<string, Acknowledged>();
  readonly #asked = new Set<string>(["zookeeper"]);
  /** Deleted, or deleted perhaps. */
  readonly #gone = new Map<string, "acknowledged" | "unknown">();
  /** Of clients that have written: one that has done nothing loses nothing by having ended. */
  readonly #sessions: { sessionId: bigint; passwd: Uint8Array; timeoutMs: number }[] = [];
  #lastZxid = 0n;
  #next = 0;
  writes = 0;

  constructor(keeper: FaultyKeeper) {
    this.#keeper = keeper;
  }

  /** Until the connection ends, or after so many writes. */
  async work(writesMax = Infinity): Promise<void> {
    const client = await eventually(() => RawClient.connect(this.#keeper.address, { timeoutMs: sessionMs }), {
      withinMs: 20_000,
    });
    const first = this.writes;
    const write = async () => {
      while (this.writes < first + writesMax) await this.#write(client);
    };
    const ends = Array.from({ length: writers }, () =>
      write().catch((error) => {
        if (!client.isClosed) throw error;
      }));
    await Promise.all(ends);
    await client.drop();
    const { sessionId, passwd } = client.hello;
    if (passwd !== null && this.writes > first) this.#sessions.push({ sessionId, passwd, timeoutMs: sessionMs });
  }

  async #write(client: RawClient): Promise<void> {
    const name = `n${this.#next++}`;
    const isEphemeral = this.#next % 3 === 0;
    this.#asked.add(name);
    const flags = isEphemeral ? createFlag.ephemeral : createFlag.persistent;
    const made = await client.call("create", node(`/${name}`, { flags }));
    if (made.err !== 0) throw new Error(`create /${name}: ${made.err}`);
    this.#acknowledged(made.zxid);
    this.#there.set(name, { zxid: made.zxid, session: isEphemeral ? client.sessionId : null });
    if (this.#next % 5 !== 0) return;
    this.#gone.set(name, "unknown");
    const deleted = await client.call("delete", { path: `/${name}`, version: -1 });
    if (deleted.err !== 0) throw new Error(`delete /${name}: ${deleted.err}`);
    this.#acknowledged(deleted.zxid);
    this.#gone.set(name, "acknowledged");
  }

  #acknowledged(zxid: bigint): void {
    if (zxid <= this.#lastZxid) throw new Error(`transaction ${zxid} came after ${this.#lastZxid}`);
    this.#lastZxid = zxid;
    this.writes++;
  }

  /** What does not hold of what was acknowledged. */
  async problems(): Promise<string[]> {
    const { address } = this.#keeper;
    const problems: string[] = [];
    // In a session that is there: a new one would have to be stored.
    let reader = await eventually(() => RawClient.connect(address, this.#sessions[0]), { withinMs: 20_000 });
    if (reader.sessionId === 0n) reader = await RawClient.connect(address);
    const children = (await reader.call("getChildren", { path: "/", watch: false })).value?.children ?? [];
    const found = new Set(children);
    for (const name of this.#there.keys()) {
      if (!found.has(name) && !this.#gone.has(name)) problems.push(`/${name} is missing`);
      if (found.has(name) && this.#gone.get(name) === "acknowledged") problems.push(`/${name} is there again`);
    }
    for (const name of found) if (!this.#asked.has(name)) problems.push(`nobody has asked for /${name}`);
    await reader.drop();
    for (const session of this.#sessions) {
      const client = await RawClient.connect(address, session);
      if (client.sessionId !== session.sessionId) {
        problems.push(`session ${this.#sessions.indexOf(session)} of ${this.#sessions.length} is gone`);
      }
      await client.drop();
    }
    return problems;
  }
}

describeWithPeer("cc", `a keeper whose storage fails it [BATON_SEED=${seed}]`, () => {
  const random = seededRandom(seed);
  let keeper: FaultyKeeper;
  let traffic: NodeTraffic;
  beforeEach(() => {
    keeper = new FaultyKeeper();
    traffic = new NodeTraffic(keeper);
  });
  afterEach(() => keeper[Symbol.asyncDispose]());

  const pick = (count: number, last: number) => someSteps(random, isFullDose ? last : count, last);
  const losePower = () => keeper.faults.losePower(random() < 0.3 ? undefined : random);

  test("after a kill at each durable step, without unsynced writes, nothing acknowledged is lost", async () => {
    const lost = { writes: 0, torn: 0, names: 0 };
    expect(await keeper.start()).toBe(true);
    for (const step of pick(10, 150)) {
      keeper.faults.killAt(step);
      await traffic.work();
      await keeper.ended();
      const { writes, torn, names } = losePower();
      lost.writes += writes;
      lost.torn += torn;
      lost.names += names;
      keeper.faults.killAt(0);
      expect(await keeper.start()).toBe(true);
      expect([step, ...await traffic.problems()]).toEqual([step]);
    }
    console.log(`${traffic.writes} writes; ${JSON.stringify(lost)} lost`);
  });

  test("killed at each durable step of its start, the first and others: it starts, with what it had", async () => {
    let starts = 0;
    for (const step of pick(8, isFullDose ? 60 : 16)) {
      // Every other time the first one, and every other time on what has been there before.
      if (step % 2 === 1) {
        await keeper[Symbol.asyncDispose]();
        keeper = new FaultyKeeper();
        traffic = new NodeTraffic(keeper);
      } else {
        keeper.faults.killAt(0);
        expect(await keeper.start()).toBe(true);
        await traffic.work(20);
        await keeper.kill();
        losePower();
      }
      keeper.faults.killAt(step);
      if (await keeper.start()) await keeper.kill();
      else starts++;
      losePower();
      keeper.faults.killAt(0);
      expect(await keeper.start()).toBe(true);
      expect([step, ...await traffic.problems()]).toEqual([step]);
      await traffic.work(10);
      await keeper.kill();
      losePower();
    }
    console.log(`killed at ${starts} starts`);
    expect(starts).toBeGreaterThan(0);
  });

  test("after a kill before a commit's sync and a power loss during the next start it keeps its data", async () => {
    expect(await keeper.start()).toBe(true);
    for (const step of pick(4, 12)) {
      await traffic.work(10);
      keeper.faults.killAt(1 + Math.floor(random() * 3), ["sync"]);
      await traffic.work();
      await keeper.ended(); // the kernel has what was written; the disk may not
      keeper.faults.killAt(step);
      if (await keeper.start()) await keeper.kill();
      losePower();
      keeper.faults.killAt(0);
      expect([await keeper.start(), keeper.output]).toEqual([true, expect.not.stringContaining("damaged")]);
      expect([step, ...await traffic.problems()]).toEqual([step]);
    }
  });

  test("a keeper that acknowledges before it has synced is caught", async () => {
    await keeper.start();
    await traffic.work(20);
    await keeper.kill();
    keeper.faults.settle();
    keeper.faults.syncsLie = true;
    await keeper.start();
    await traffic.work(40);
    await keeper.kill();
    keeper.faults.losePower();
    keeper.faults.syncsLie = false;
    // By the index that SQLite keeps beside the log, if the power has left that; else only its clients know.
    expect(await keeper.start()).toBe(false);
    expect(keeper.output).toContain("the log is damaged");
    rmSync(join(keeper.dataDir, "keeper.sqlite-shm"));
    await keeper.start();
    expect((await traffic.problems()).join("; ")).toMatch(/is missing/);
  });

  const log = "-wal";
  const cases: readonly (readonly [string, Fault])[] = [
    ["no room for the log", { calls: ["write"], error: "ENOSPC", path: log }],
    ["room for a part of it", { calls: ["write"], error: "ENOSPC", path: log, isShort: true, skip: 5, times: 30 }],
    ["a log that cannot be written", { calls: ["write"], error: "EIO", path: log, skip: 3, times: 2 }],
    ["a log that cannot be synced", { calls: ["sync"], error: "EIO", path: log, times: 1 }],
    ["a log that cannot be synced for long", { calls: ["sync"], error: "EIO", path: log, skip: 2, times: 4 }],
  ];
  for (const [what, fault] of isFullDose ? cases : shuffled(cases, random).slice(0, 3)) {
    test(`${what}: it says so, goes on when it can, and what was acknowledged survives the loss of power`, async () => {
      await keeper.start();
      await traffic.work(20);
      keeper.faults.fail(fault);
      await traffic.work();
      await eventually(() => keeper.output.includes("writes are refused until the disk can store again"), {
        what: "the keeper to say what is wrong",
      });
      expect(await traffic.problems()).toEqual([]);
      keeper.faults.fail();
      await eventually(() => keeper.output.includes("can store again"), { withinMs: 20_000 });
      await traffic.work(40);
      await keeper.kill();
      keeper.faults.losePower(random() < 0.5 ? undefined : random);
      expect(await keeper.start()).toBe(true);
      expect(await traffic.problems()).toEqual([]);
    });
  }
});
