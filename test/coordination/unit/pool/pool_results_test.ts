/** The result of an item without a response of the server. The session lives on. */
import { expect, test } from "bun:test";
import { errorMessage } from "../../../../src/base/errors.ts";
import { PoolItemRecords } from "../../../../src/coordination/pool/item_records.ts";
import { ItemResultStore } from "../../../../src/coordination/pool/item_result_store.ts";
import { refuse } from "../../../support/fake_tree.ts";
import { LockBench } from "../../../support/lock_bench.ts";
import { poolOfC, poolRunIn } from "../../../support/pool_run.ts";

for (
  const [forHowLong, timeouts, then] of [
    ["for longer than a session timeout is stored later", 1.5, { isStored: true, ranAgain: [] }],
    ["for good is reported, and its item is not done for the others", Infinity, { isStored: false, ranAgain: ["1"] }],
  ] as const
) {
  test(`a result that cannot be stored ${forHowLong}`, async () => {
    const bench = new LockBench();
    const { clock } = bench;
    const sharing = bench.client(); // its list is in use all the time
    await bench.within(new PoolItemRecords(sharing, { path: poolOfC, acl: sharing.acl, clock }).joinSharedList());

    const zk = bench.client();
    const { timeoutMs } = zk.session;
    zk.session.renew(clock.now() + 100 * timeoutMs);
    let [failsFromMs, failsToMs] = [Infinity, Infinity];
    const { multi } = zk;
    zk.multi = (requests) => {
      const isFailing = clock.now() >= failsFromMs && clock.now() < failsToMs;
      return isFailing ? Promise.reject(refuse("CONNECTIONLOSS", "multi", "")) : multi.call(zk, requests);
    };
    const run = () => {
      failsFromMs = clock.now();
      failsToMs = failsFromMs + timeouts * timeoutMs;
      return Promise.resolve(
        { result: "done", what: "", mayRetry: false, stopsPool: false, keepsLock: false } as const,
      );
    };
    const list = () => Promise.resolve(["1"]);
    const { ended, problems } = poolRunIn(bench, zk, { list, run, loop: false, withinMs: 10 * timeoutMs });
    expect(await ended).toMatchObject({ done: 1 });
    await zk.close();

    const results = new ItemResultStore(bench.client(), poolOfC, []);
    expect(await bench.within(results.findResult("1", 0)) !== null).toBe(then.isStored);
    const unknown = 'It is not known whether baton could store the result of item "1", so it may run again';
    const reports = then.isStored ? [] : [unknown];
    expect(problems.map((thrown) => errorMessage(thrown).split(":")[0] ?? "")).toEqual(reports);
    const other = poolRunIn(bench, bench.client(), { list, loop: false });
    await other.ended;
    expect(other.ran).toEqual([...then.ranAgain]);
  });
}

test("a result whose response was lost does not come back after it was cleared", async () => {
  const bench = new LockBench();
  const results = new ItemResultStore(bench.client(), poolOfC, []);
  const list = () => Promise.resolve(["1"]);
  await poolRunIn(bench, bench.client(), { list, loop: false }).ended; // the shard of the item exists
  await bench.within(results.clearAll());

  const zk = bench.client();
  const { multi } = zk;
  let lost = 0;
  zk.multi = async (requests) => {
    const responses = await multi.call(zk, requests);
    const isResult = requests.some(({ type, path }) => type === "create" && path.startsWith(`${poolOfC.ended}/`));
    if (!isResult || lost++ > 0) return responses;
    expect(await results.clearAll()).toBe(1);
    throw refuse("CONNECTIONLOSS", "multi", "");
  };
  const { ended, problems } = poolRunIn(bench, zk, { list, loop: false });
  expect(await ended).toMatchObject({ done: 1 });
  expect(lost).toBe(1);
  expect(problems).toEqual([]);
  expect(await bench.within(results.findResult("1", 0))).toBeNull();
});
