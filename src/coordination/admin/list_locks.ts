/** The locks that exist, with how many hold and wait. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { listInUse, type UseSummary } from "./list_in_use.ts";

export type LockSummary = UseSummary;

export interface ListLocksOptions {
  /** "/baton" when left out. */
  readonly root?: string;
}

/** Sorted by name. A lock that nobody uses any more is there until the server reaps it. */
export async function listLocks(zk: ZooKeeper, options: ListLocksOptions = {}): Promise<readonly LockSummary[]> {
  return (await listInUse(zk, { ...options, kinds: ["lock"] })).lock;
}
