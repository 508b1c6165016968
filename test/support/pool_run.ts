/** One run of the pool `c` against a tree in memory, and what became of it. */
import { runPool } from "../../src/coordination/pool/run_pool_items.ts";
import type { PoolJobEnd, PoolRunOptions } from "../../src/coordination/pool/pool_run_options.ts";
import { poolPath } from "../../src/coordination/pool/pool_path.ts";
import type { FakeZooKeeper } from "./fake_zookeeper.ts";
import type { LockBench } from "./lock_bench.ts";

export const poolInfo = { host: "here", pid: 1, user: "test", argv0: "work", reason: "" };
export const poolOfC = poolPath("c");
const done: PoolJobEnd = { result: "done", what: "exited with 0", mayRetry: false, stopsPool: false, keepsLock: false };

/** Loops over 1, 2, 3 and remembers; every job ends well at once. `ran`: in the order in which they began. */
export function poolRunIn(
  bench: LockBench,
  zk: FakeZooKeeper,
  { withinMs, ...options }: Partial<PoolRunOptions> & { readonly withinMs?: number } = {},
) {
  const ran: string[] = [];
  const problems: unknown[] = [];
  const ended = runPool(zk, "c", {
    path: poolOfC,
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
    info: poolInfo,
    clock: bench.clock,
    ...options,
  });
  return { ended: bench.within(ended, withinMs), ran, problems };
}
