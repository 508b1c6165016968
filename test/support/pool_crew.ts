/** Runs of one pool by the clients of a crew, with what a test leaves out. */
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import { runPool } from "../../src/coordination/pool/run_pool_items.ts";
import type { PoolItemCounts } from "../../src/coordination/pool/work_list.ts";
import type { PoolRunOptions } from "../../src/coordination/pool/pool_run_options.ts";
import { type PoolPath, poolPath } from "../../src/coordination/pool/pool_path.ts";
import { systemClock } from "../../src/base/support/clock.ts";
import type { LockCrew } from "./lock_crew.ts";
import type { PoolWork } from "./pool_work.ts";

/** Of the component "c". */
export const pathIn = (crew: LockCrew): PoolPath => poolPath("c", { root: crew.root });

export function pool(
  crew: LockCrew,
  zk: ZooKeeper,
  work: PoolWork,
  options: Partial<PoolRunOptions> & { items: string[] },
): Promise<PoolItemCounts> {
  return runPool(zk, "c", {
    path: pathIn(crew),
    jobs: 1,
    total: null,
    loop: false,
    retries: 0,
    rememberMs: null,
    wait: "none",
    list: () => Promise.resolve(options.items),
    listsAgain: false,
    run: work.run,
    stop: new AbortController().signal,
    onProblem: (thrown) => {
      throw thrown;
    },
    info: { host: "here", pid: 1, user: "test", argv0: "work", reason: "" },
    clock: systemClock(),
    ...options,
  });
}
