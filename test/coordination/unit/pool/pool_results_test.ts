/** The result of an item while no server can write, such as a keeper whose disk fails. Its session lives on. */
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
    const reports = then.isStored ? [] : ['Cannot store the result of item "1", so it may run again'];
    expect(problems.map((thrown) => errorMessage(thrown).split(":")[0] ?? "")).toEqual(reports);
    const other = poolRunIn(bench, bench.client(), { list, loop: false });
    await other.ended;
    expect(other.ran).toEqual([...then.ranAgain]);
  });
}
