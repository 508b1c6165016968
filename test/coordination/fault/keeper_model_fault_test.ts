/**
 * A keeper that dies in the middle of everything that changes nodes, compared node by node with what its clients know:
 * data, versions, counters, ACLs, owners, transaction numbers. `BATON_DOSE=full` does it some hundred times.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { createFlag } from "../../../src/protocols/zookeeper/jute/zookeeper_operations.ts";
import { node } from "../conformance/zookeeper_fixture.ts";
import { dose } from "../../support/dose.ts";
import { eventually } from "../../support/eventually.ts";
import { FaultyKeeper } from "../../support/faulty_keeper.ts";
import { ModelClient } from "../../support/model_client.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { seededRandom, testSeed } from "../../support/random.ts";
import { RawClient } from "../../support/raw_client.ts";

setDefaultTimeout(1_200_000);

const seed = testSeed();
const clients = 3;

describeWithPeer("cc", `a keeper that dies, node by node [BATON_SEED=${seed}]`, () => {
  const random = seededRandom(seed);
  let keeper: FaultyKeeper;
  beforeEach(() => {
    keeper = new FaultyKeeper();
  });
  afterEach(() => keeper[Symbol.asyncDispose]());

  /** At a step of its own, or from outside; with the power, or alone. */
  const dieAndStart = async (work: () => Promise<unknown>): Promise<void> => {
    const isInside = random() < 0.7;
    if (isInside) keeper.faults.killAt(1 + Math.floor(random() * 120));
    await work();
    if (!isInside || !keeper.faults.disarm()) await keeper.kill();
    await keeper.ended();
    if (random() < 0.7) keeper.faults.losePower(random() < 0.3 ? undefined : random);
    else keeper.faults.settle();
    keeper.faults.killAt(0);
    expect(await keeper.start()).toBe(true);
  };

  test("has all that it has acknowledged, and of the rest a beginning", async () => {
    expect(await keeper.start()).toBe(true);
    const all = Array.from({ length: clients }, (_, index) => new ModelClient(keeper.address, `/m${index}`, random));
    await Promise.all(all.map((client) => client.begin()));
    for (let round = 0; round < dose({ gate: 12, full: 300 }); round++) {
      await dieAndStart(() => Promise.all(all.map((client) => client.work(20 + Math.floor(random() * 60)))));
      for (const client of all) expect([round, ...await client.problems()]).toEqual([round]);
      expect(await Promise.all(all.map((client) => client.isGuarded()))).toEqual(all.map(() => true));
    }
    console.log(`${all.reduce((sum, client) => sum + client.acknowledged, 0)} steps acknowledged`);
  });

  test("reaps after its death what was due, and nothing else", async () => {
    const words = ["--limit", "containerCheckMs=100"];
    expect(await keeper.start(words)).toBe(true);
    const ttlMs = 1500;
    const before = await RawClient.connect(keeper.address);
    await before.call("createContainer", node("/emptied", { flags: createFlag.container }));
    await before.call("create", node("/emptied/child"));
    await before.call("createContainer", node("/used", { flags: createFlag.container }));
    await before.call("create", node("/used/child"));
    await before.call("create", node("/stays"));
    await before.call("createTtl", { ...node("/parent", { flags: createFlag.persistentTtl }), ttl: 1n });
    await before.call("create", node("/parent/child"));
    const madeMs = Date.now();
    await before.call("createTtl", { ...node("/ttl", { flags: createFlag.persistentTtl }), ttl: BigInt(ttlMs) });
    await keeper.kill();
    keeper.faults.losePower(random);
    expect(await keeper.start(words)).toBe(true);
    const after = await RawClient.connect(keeper.address);
    const isThere = async (path: string) => (await after.call("exists", { path, watch: false })).err === 0;
    await after.call("delete", { path: "/emptied/child", version: -1 });
    await eventually(async () => !await isThere("/emptied"));
    await eventually(async () => !await isThere("/ttl"));
    expect(Date.now() - madeMs).toBeGreaterThanOrEqual(ttlMs);
    expect(await Promise.all(["/used", "/stays", "/parent"].map(isThere))).toEqual([true, true, true]);
  });
});
