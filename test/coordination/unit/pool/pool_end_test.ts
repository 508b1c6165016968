/** What a run reports if the end of an item is not stored, and what a cleanup must not delete. */
import { describe, expect, test } from "bun:test";
import { errorMessage } from "../../../../src/base/errors.ts";
import { PoolItemRecords } from "../../../../src/coordination/pool/item_records.ts";
import { ItemResultStore } from "../../../../src/coordination/pool/item_result_store.ts";
import type { MultiRequest } from "../../../../src/protocols/zookeeper/zookeeper.ts";
import { refuse } from "../../../support/fake_tree.ts";
import type { FakeZooKeeper } from "../../../support/fake_zookeeper.ts";
import { LockBench } from "../../../support/lock_bench.ts";
import { poolOfC, poolRunIn } from "../../../support/pool_run.ts";

const list = () => Promise.resolve(["1"]);
const done = { result: "done", what: "", mayRetry: false, stopsPool: false, keepsLock: false } as const;
const withoutResults = { list, loop: false, rememberMs: null } as const;

const texts = (problems: readonly unknown[]) => problems.map((thrown) => errorMessage(thrown).split(":")[0] ?? "");
const unstored = 'Cannot store the result of item "1", so it may run again';
const isUnknown = 'It is not known whether baton could store the result of item "1", so it may run again';
const unrecorded = 'Cannot record the end of item "1", so it may run again';

const connectionLoss = () => Promise.reject(refuse("CONNECTIONLOSS", "multi", ""));
const storesResult = (requests: readonly MultiRequest[]) =>
  requests.some(({ type, path }) => type === "create" && path.startsWith(`${poolOfC.ended}/`));
/** Whether these release an item's lock and write its record. */
const writesEnd = ([first, second]: readonly MultiRequest[]) => first?.type === "delete" && second?.type === "setData";

async function sharingRecords(bench: LockBench, zk: FakeZooKeeper = bench.client()): Promise<PoolItemRecords> {
  const records = new PoolItemRecords(zk, { path: poolOfC, acl: zk.acl, clock: bench.clock });
  await bench.within(records.joinSharedList());
  return records;
}

describe("a run reports an item that may run again:", () => {
  for (const loop of [true, false]) {
    test(`the item was done, and then its lock was lost (loop ${loop})`, async () => {
      const bench = new LockBench();
      const zk = bench.client();
      const run = () => {
        bench.clock.stall(zk.session.timeoutMs + 1); // after the command has exited with 0
        return Promise.resolve(done);
      };
      const { ended, problems } = poolRunIn(bench, zk, { list, run, loop });
      expect(await ended).toMatchObject({ done: 1 });
      expect(texts(problems)).toEqual([unstored]);
    });
  }

  test("its request was not executed, and an operator deleted the holder's node", async () => {
    const bench = new LockBench();
    const zk = bench.client();
    const { multi } = zk;
    let lost = 0;
    zk.multi = (requests) => {
      if (!storesResult(requests) || lost++ > 0) return multi.call(zk, requests);
      bench.tree.delete(requests[0]?.path ?? "", -1);
      return connectionLoss();
    };
    const { ended, problems } = poolRunIn(bench, zk, { list, loop: false });
    await ended;
    const results = new ItemResultStore(bench.client(), poolOfC, []);
    expect(await bench.within(results.findResult("1", 0))).toBeNull();
    expect(texts(problems)).toEqual([unstored]);
  });

  test("its result is stored or not: no server answers until the lease ends", async () => {
    const bench = new LockBench();
    const zk = bench.client();
    const { multi } = zk;
    let isLost = false;
    zk.multi = async (requests) => {
      if (isLost) return await connectionLoss();
      const responses = await multi.call(zk, requests);
      isLost = storesResult(requests);
      return isLost ? await connectionLoss() : responses;
    };
    const { ended, problems } = poolRunIn(bench, zk, { list, loop: false, withinMs: 1_000_000 });
    await ended;
    expect(texts(problems)).toEqual([isUnknown]);
  });

  for (
    const [why, isRefused] of [
      ["no server can write for longer than the release is tried", false],
      ["the record cannot be written", true],
    ] as const
  ) {
    test(`its end is not in the list that calls share: ${why}`, async () => {
      const bench = new LockBench();
      await sharingRecords(bench);
      const zk = bench.client();
      const { timeoutMs } = zk.session;
      zk.session.renew(bench.clock.now() + 100 * timeoutMs);
      let failsFromMs = Infinity;
      const isFailing = () => {
        const sinceMs = bench.clock.now() - failsFromMs;
        return !isRefused && sinceMs >= 0 && sinceMs < 2.2 * timeoutMs;
      };
      const { multi, delete: remove } = zk;
      zk.multi = (requests) => {
        if (isRefused && writesEnd(requests)) return Promise.reject(refuse("NOAUTH", "multi", "", 1));
        return isFailing() ? connectionLoss() : multi.call(zk, requests);
      };
      zk.delete = (...words) => isFailing() ? connectionLoss() : remove.apply(zk, words);
      const run = () => {
        failsFromMs = bench.clock.now();
        return Promise.resolve(done);
      };
      const { ended, problems } = poolRunIn(bench, zk, { ...withoutResults, run, withinMs: 10 * timeoutMs });
      expect(await ended).toMatchObject({ done: 1 });
      await zk.close();
      const other = poolRunIn(bench, bench.client(), withoutResults);
      await other.ended;
      expect(other.ran).toEqual(["1"]);
      expect(texts(problems)).toEqual([unrecorded]);
    });
  }
});

test("a run reports nothing if its result is stored, even if nobody told it so and its lock was broken", async () => {
  const bench = new LockBench();
  const zk = bench.client();
  const { multi } = zk;
  let isLost = false;
  zk.multi = async (requests) => {
    const responses = await multi.call(zk, requests);
    if (!storesResult(requests) || isLost) return responses;
    isLost = true;
    bench.tree.delete(requests[0]?.path ?? "", -1);
    return await connectionLoss();
  };
  const { ended, problems } = poolRunIn(bench, zk, { list, loop: false });
  await ended;
  const results = new ItemResultStore(bench.client(), poolOfC, []);
  expect(await bench.within(results.findResult("1", 0))).not.toBeNull();
  expect(texts(problems)).toEqual([]);
});

describe("a cleanup that has read a node does not delete a newer one of the same version:", () => {
  const end = { result: "done", what: "", by: "", atMs: 1 } as const;
  const cleanUp = async (results: ItemResultStore) => {
    for (let turn = 0; turn < 16; turn++) await results.clearExpired(turn, 1000);
  };

  /** Calls `work` once, before the first deletion. */
  function beforeDeletion(zk: FakeZooKeeper, work: () => Promise<unknown>): void {
    const { multi } = zk;
    zk.multi = async (requests) => {
      if (requests.at(-1)?.type === "delete") {
        zk.multi = multi;
        await work();
      }
      return await multi.call(zk, requests);
    };
  }

  for (const who of ["another cleanup", "pool clear", "pool clear of the item"]) {
    test(`a result that was stored after ${who}`, async () => {
      const bench = new LockBench();
      const zk = bench.client();
      const first = new ItemResultStore(zk, poolOfC, zk.acl);
      const other = bench.client();
      const second = new ItemResultStore(other, poolOfC, other.acl);
      await bench.within(first.write("1", { ...end, untilMs: 1 }, "/"));
      beforeDeletion(zk, async () => {
        if (who === "another cleanup") await cleanUp(second);
        else if (who === "pool clear") await second.clearAll();
        else await second.clearItems(["1"]);
        await second.write("1", { ...end, untilMs: 2000 }, "/"); // the item ran again
      });
      await bench.within(cleanUp(first));
      expect(await bench.within(second.findResult("1", 1000))).not.toBeNull();
    });
  }

  test("a record, so that calls that share the list run the item once", async () => {
    const bench = new LockBench();
    // The record of an earlier list, whose last call was killed.
    const earlier = bench.client();
    await sharingRecords(bench, earlier);
    await poolRunIn(bench, bench.client(), withoutResults).ended;
    await earlier.close();

    const zk = bench.client();
    const one = await sharingRecords(bench, zk);
    const two = await sharingRecords(bench);
    const ran: string[] = [];
    beforeDeletion(zk, async () => {
      await two.clearPart(0);
      const run = poolRunIn(bench, bench.client(), withoutResults);
      await run.ended;
      ran.push(...run.ran);
    });
    await bench.within(one.clearPart(0));
    const again = poolRunIn(bench, bench.client(), withoutResults);
    await again.ended;
    expect([...ran, ...again.ran]).toEqual(["1"]);
  });
});

test("an item that a call has done does not run again if the first undo of a later claim is lost", async () => {
  const bench = new LockBench();
  await sharingRecords(bench);
  await poolRunIn(bench, bench.client(), withoutResults).ended;
  const zk = bench.client();
  const { multi } = zk;
  let lost = 0;
  zk.multi = (requests) => writesEnd(requests) && lost++ === 0 ? connectionLoss() : multi.call(zk, requests);
  const run = () => Promise.resolve({ ...done, result: "not_started" } as const);
  await poolRunIn(bench, zk, { ...withoutResults, listsAgain: true, run }).ended;
  await zk.close();
  expect(lost).toBeGreaterThan(1);
  const other = poolRunIn(bench, bench.client(), withoutResults);
  await other.ended;
  expect(other.ran).toEqual([]);
});
