/** The locks that exist, with how many hold and wait. */
import type { ZooKeeper } from "../clients/zookeeper/zookeeper.ts";
import { decodeLockName } from "./lock_name.ts";
import { lockPathAt, locksPath } from "./lock_path.ts";
import { orNull } from "./lock_view.ts";

export interface LockSummary {
  readonly name: string;
  readonly holders: number;
  readonly waiters: number;
}

export interface ListLocksOptions {
  /** "/baton" when left out. */
  readonly root?: string;
}

/** How many locks are asked at a time: a list of 100,000 must not fill anybody's buffers. */
const batchSize = 200;

/** Sorted by name. A lock that nobody uses any more is there until the server reaps it. */
export async function listLocks(zk: ZooKeeper, options: ListLocksOptions = {}): Promise<LockSummary[]> {
  const at = locksPath(options.root);
  const list = await orNull(zk.getChildren(at));
  const children = (list?.children ?? []).sort();
  const summaries: LockSummary[] = [];
  for (let start = 0; start < children.length; start += batchSize) {
    const batch = children.slice(start, start + batchSize);
    summaries.push(
      ...await Promise.all(batch.map(async (child) => {
        const path = lockPathAt(`${at}/${child}`);
        const [holders, queue] = await Promise.all([zk.exists(path.holders), zk.exists(path.queue)]);
        return { name: decodeLockName(child), holders: holders?.numChildren ?? 0, waiters: queue?.numChildren ?? 0 };
      })),
    );
  }
  return summaries;
}
