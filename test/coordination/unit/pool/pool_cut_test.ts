/**
 * A reply cut at every request/reply boundary of a pool's run: every item runs once, is written down, and given back.
 */
import { expect, test } from "bun:test";
import { acquireUncontendedLock } from "../../../../src/coordination/lock/uncontended_lock.ts";
import { ItemResultStore } from "../../../../src/coordination/pool/item_result_store.ts";
import { lockPath } from "../../../../src/coordination/nodes/node_paths.ts";
import { cutEverywhere } from "../../../support/cut_everywhere.ts";
import type { Cut } from "../../../support/fake_zookeeper.ts";
import { LockBench } from "../../../support/lock_bench.ts";
import { poolInfo, poolOfC, poolRunIn } from "../../../support/pool_run.ts";

const acl = [{ perms: 31, id: { scheme: "world", id: "anyone" } }];
/** Who lets an ephemeral node live that is nobody's any more keeps an item from everybody. */
const leftIn = ({ tree }: LockBench) => [...tree.nodes.keys()].filter((node) => /\/([hq]|runs)\/./.test(node));
const recordsIn = ({ tree }: LockBench) => [...tree.nodes.keys()].filter((node) => /\/records\/.\/./.test(node));

for (const [what, options] of [["-j 1", {}], ["-j 2", { jobs: 2 }], ["--total", { total: 2 }]] as const) {
  test(`a run with ${what}`, async () => {
    await cutEverywhere(async (cut?: Cut) => {
      const bench = new LockBench();
      const zk = bench.client(cut);
      const { ended, ran, problems } = poolRunIn(bench, zk, options);
      expect(await ended).toMatchObject({ claimed: 3, done: 3, failed: 0 });
      expect(ran.sort()).toEqual(["1", "2", "3"]);
      expect(problems).toEqual([]);
      expect((await new ItemResultStore(bench.client(), poolOfC, acl).readResults(0)).size).toBe(3);
      expect([...leftIn(bench), ...recordsIn(bench)]).toEqual([]);
      return zk.sent.length;
    });
  }, 60_000);
}

for (const isCut of ["the one that lists", "the one that ends an item meanwhile"]) {
  test(`two runs with lists, cut: ${isCut}`, async () => {
    await cutEverywhere(async (cut?: Cut) => {
      const bench = new LockBench();
      const zk = bench.client(cut);
      const other = bench.client();
      const [ending, listing] = isCut === "the one that lists" ? [other, zk] : [zk, other];
      const end = Promise.withResolvers<void>();
      const asked = Promise.withResolvers<void>();
      const lists = [["1", "2"], ["1", "2"], []];
      const done = { result: "done", what: "", mayRetry: false, stopsPool: false, keepsLock: false } as const;
      const first = poolRunIn(bench, ending, {
        loop: false,
        rememberMs: null,
        listsAgain: true,
        list: () => Promise.resolve(["1"]),
        run: async () => {
          await end.promise;
          return done;
        },
      });
      await bench.clock.advance(1000);
      const second = poolRunIn(bench, listing, {
        rememberMs: null,
        wait: 10_000,
        listsAgain: true,
        list: async () => {
          asked.resolve();
          if (lists.length === 3) await first.ended;
          return lists.shift() ?? [];
        },
      });
      await bench.within(asked.promise);
      end.resolve();
      expect(await first.ended).toMatchObject({ done: 1 });
      expect(await second.ended).toMatchObject({ done: 2 });
      expect([lists, [...second.ran].sort()]).toEqual([[], ["1", "2"]]);
      expect(second.ran[0]).toBe("2"); // of the other the first list says nothing
      expect([...leftIn(bench), ...recordsIn(bench), ...first.problems, ...second.problems]).toEqual([]);
      return zk.sent.length;
    });
  }, 120_000);
}

test("a run after another, whose items are known", async () => {
  await cutEverywhere(async (cut?: Cut) => {
    const bench = new LockBench();
    await poolRunIn(bench, bench.client()).ended;
    const zk = bench.client(cut);
    const { ended, ran } = poolRunIn(bench, zk);
    expect([await ended, ran]).toEqual([{ claimed: 0, done: 0, failed: 0, busy: 0, skipped: 3, remaining: 0 }, []]);
    expect(leftIn(bench)).toEqual([]);
    return zk.sent.length;
  });
}, 60_000);

test("a run on other settings is refused, and one on the same goes on beside it", async () => {
  await cutEverywhere(async (cut?: Cut) => {
    const bench = new LockBench();
    const hold = Promise.withResolvers<string[]>();
    const first = poolRunIn(bench, bench.client(), { list: () => hold.promise });
    await bench.clock.advance(0);
    const zk = bench.client(cut);
    const other = poolRunIn(bench, zk, { total: 2 });
    expect(await other.ended.then(() => "none", ({ code }) => code)).toBe("LIMIT_MISMATCH");
    const same = poolRunIn(bench, zk);
    expect(await same.ended.then(() => "none", ({ code }) => code)).toBe("LOCK_BUSY");
    hold.resolve(["1"]);
    expect([await first.ended, other.ran, same.ran]).toMatchObject([{ done: 1 }, [], []]);
    expect(leftIn(bench)).toEqual([]);
    return zk.sent.length;
  });
}, 60_000);

test("a lock that is not there is taken by one of two, and nobody else gets in", async () => {
  await cutEverywhere(async (cut?: Cut) => {
    const bench = new LockBench();
    const zk = bench.client(cut);
    const options = { path: lockPath("demo"), info: poolInfo, acl, clock: bench.clock, kind: "lock" };
    const [first, second] = await bench.within(
      Promise.all([
        acquireUncontendedLock(zk, "demo", options),
        acquireUncontendedLock(bench.client(), "demo", options),
      ]),
    );
    expect(bench.holders.length).toBe([first, second].filter((one) => one !== null).length);
    expect(bench.holders.length).toBeLessThanOrEqual(1);
    for (const taken of [first, second]) {
      if (taken === null) continue;
      const outcome = bench.within(bench.acquire(bench.client(), { wait: "none" }));
      expect(await outcome.then(() => "granted", (error) => error.code)).toBe("LOCK_BUSY");
      bench.tokens.push(taken.lease.fencingToken);
      await bench.within(taken.lease.release());
    }
    expect(leftIn(bench)).toEqual([]);
    await bench.within((await bench.within(bench.acquire(bench.client(), { wait: "none" }))).release());
    bench.expectTokensToGrow();
    return zk.sent.length;
  });
}, 60_000);
