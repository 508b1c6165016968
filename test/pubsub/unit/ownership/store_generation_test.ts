/** An older copy of a server's store is not served, whenever it was taken, and nobody else is disturbed by it. */
import { expect, test } from "bun:test";
import { PubsubPath } from "../../../../src/pubsub/ownership/pubsub_path.ts";
import { StoreGeneration } from "../../../../src/pubsub/ownership/store_generation.ts";
import { eventually } from "../../../support/eventually.ts";
import { FakeTree } from "../../../support/fake_tree.ts";
import { type Cut, FakeZooKeeper } from "../../../support/fake_zookeeper.ts";
import { cutEverywhere } from "../../../support/cut_everywhere.ts";
import { hastyClock } from "../../../support/hasty_clock.ts";
import { OwnershipCrew } from "../../../support/ownership_crew.ts";

const path = new PubsubPath("/baton");

/** Numbers that can be put back. */
class GenerationNumbers {
  readonly storeId = "store";
  isChanged = false;
  kept: number;

  constructor(generation = 0) {
    this.kept = generation;
  }

  generation(): Promise<number> {
    return Promise.resolve(this.kept);
  }

  raiseGeneration(above = 0): Promise<number | null> {
    if (!this.isChanged && above === 0) return Promise.resolve(null);
    this.isChanged = false;
    return Promise.resolve(this.kept = Math.max(this.kept, above) + 1);
  }
}

function rig(cut?: Cut) {
  const tree = new FakeTree();
  const zk = new FakeZooKeeper(tree, hastyClock(100), { timeoutMs: 1e9, ...(cut === undefined ? {} : { cut }) });
  const store = new GenerationNumbers();
  const session = () => new StoreGeneration(zk, path, { id: "s1", store });
  const noted = () =>
    new StoreGeneration(new FakeZooKeeper(tree, hastyClock(100), { timeoutMs: 1e9 }), path, { id: "s1", store })
      .readRecorded();
  return { zk, store, session, noted };
}

test("a store is served again as often as it is started, and refused when it was put back", async () => {
  const { store, session } = rig();
  await session().confirm();
  await session().confirm();
  const copied = store.kept;
  await session().confirm();
  store.kept = copied;
  expect(session().confirm()).rejects.toMatchObject({ code: "CONFIG", message: expect.stringContaining("older copy") });
  await session().accept();
  await session().confirm();
});

test("a copy that was taken while the server ran is known by what was stored since", async () => {
  const { store, session, noted } = rig();
  const running = session();
  await running.confirm();
  const copied = store.kept;
  await running.advance();
  expect(store.kept).toBe(copied);
  await session().checkNotOlder();
  store.isChanged = true;
  await running.advance();
  expect(await noted()).toBe(store.kept);
  store.kept = copied;
  expect(session().checkNotOlder()).rejects.toMatchObject({ code: "CONFIG" });
});

test("a note of which the store is ahead is an older one, or was not written any more: the store goes on", async () => {
  const { store, session, noted } = rig();
  await session().confirm();
  store.kept += 5;
  await session().confirm();
  expect(await noted()).toBe(store.kept);
});

test("whichever answer is lost, the note is never ahead of the store", async () => {
  await cutEverywhere(async (cut?: Cut) => {
    const { zk, store, session, noted } = rig(cut);
    for (let life = 0; life < 3; life++) {
      const age = session();
      await eventually(() => age.confirm().then(() => true));
      store.isChanged = true;
      await age.advance().catch(() => {});
      expect(await noted()).toBeLessThanOrEqual(store.kept);
    }
    await eventually(() => session().confirm().then(() => true));
    expect(await noted()).toBe(store.kept);
    return zk.sent.length;
  });
});

test("a server stops serving if its store turns out to be older, and a copy beside it is refused", async () => {
  const tree = new FakeTree();
  const clock = hastyClock(100);
  const connect = () => Promise.resolve(new FakeZooKeeper(tree, clock, { timeoutMs: 1e9 }));
  await using crew = new OwnershipCrew("/baton", connect, clock);
  const one = await crew.start("s1");
  const router = await crew.router();
  await crew.put(router, "t", "a");
  const noted = crew.path.store(one.store.storeId);
  await eventually(async () => (await one.zk.getData(noted)).stat.version > 0);
  // As if the machine had been put back while another copy of it went on.
  await one.zk.setData(noted, new TextEncoder().encode(JSON.stringify({ layout: 1, server: "s1", age: 1000 })), -1);
  await crew.put(router, "t", "b").catch(() => {});
  await eventually(() => !one.ownership.isRegistered && crew.problems.length > 0);
  expect(crew.problems).toContainEqual(expect.objectContaining({ code: "CONFIG" }));
});
