/** A reply cut at every request/reply boundary of a pool's run: every item runs once, is written down, and given back. */
import { expect, test } from "bun:test";
import { takeNewLock } from "../../../src/recipes/new_lock.ts";
import { runPool } from "../../../src/recipes/pool.ts";
import { PoolMemory } from "../../../src/recipes/pool_memory.ts";
import type { PoolJobEnd, PoolOptions } from "../../../src/recipes/pool_options.ts";
import { poolPath } from "../../../src/recipes/pool_path.ts";
import { lockPath } from "../../../src/recipes/lock_path.ts";
import { cutEverywhere } from "../../support/cut_everywhere.ts";
import type { Cut, FakeZooKeeper } from "../../support/fake_zookeeper.ts";
import { LockBench } from "../../support/lock_bench.ts";

const info = { host: "here", pid: 1, user: "test", argv0: "work", reason: "" };
const acl = [{ perms: 31, id: { scheme: "world", id: "anyone" } }];
const done: PoolJobEnd = { result: "done", what: "exited with 0", mayRetry: false, stopsPool: false, keepsLock: false };
const path = poolPath("c");
/** Who lets an ephemeral node live that is nobody's any more keeps an item from everybody. */
const leftIn = ({ tree }: LockBench) => [...tree.nodes.keys()].filter((node) => /\/[hq]\/./.test(node));

function runIn(bench: LockBench, zk: FakeZooKeeper, options: Partial<PoolOptions> = {}) {
  const ran: string[] = [];
  const problems: unknown[] = [];
  const ended = runPool(zk, "c", {
    path,
    jobs: 1,
    total: null,
    loop: true,
    retries: 0,
    rememberMs: 3_600_000,
    wait: "none",
    list: () => Promise.resolve(["1", "2", "3"]),
    listsAgain: false,
    run({ item }) {
      ran.push(item);
      return Promise.resolve(done);
    },
    stop: new AbortController().signal,
    onProblem: (thrown) => problems.push(thrown),
    info,
    clock: bench.clock,
    ...options,
  });
  return { ended: bench.within(ended), ran, problems };
}

for (const [what, options] of [["-j 1", {}], ["-j 2", { jobs: 2 }], ["--total", { total: 2 }]] as const) {
  test(`a run with ${what}`, async () => {
    await cutEverywhere(async (cut?: Cut) => {
      const bench = new LockBench();
      const zk = bench.client(cut);
      const { ended, ran, problems } = runIn(bench, zk, options);
      expect(await ended).toMatchObject({ taken: 3, done: 3, failed: 0 });
      expect(ran.sort()).toEqual(["1", "2", "3"]);
      expect(problems).toEqual([]);
      expect((await new PoolMemory(bench.client(), path, acl).all(0)).size).toBe(3);
      expect(leftIn(bench)).toEqual([]);
      return zk.sent.length;
    });
  }, 60_000);
}

test("a run after another, whose items are known", async () => {
  await cutEverywhere(async (cut?: Cut) => {
    const bench = new LockBench();
    await runIn(bench, bench.client()).ended;
    const zk = bench.client(cut);
    const { ended, ran } = runIn(bench, zk);
    expect([await ended, ran]).toEqual([{ taken: 0, done: 0, failed: 0, busy: 0, known: 3 }, []]);
    expect(leftIn(bench)).toEqual([]);
    return zk.sent.length;
  });
}, 60_000);

test("a lock that is not there is taken by one of two, and nobody else gets in", async () => {
  await cutEverywhere(async (cut?: Cut) => {
    const bench = new LockBench();
    const zk = bench.client(cut);
    const options = { path: lockPath("demo"), info, acl, clock: bench.clock, thing: "lock" };
    const [first, second] = await bench.within(
      Promise.all([takeNewLock(zk, "demo", options), takeNewLock(bench.client(), "demo", options)]),
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
