/** Reads a lock in the order that safety requires. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import type { LockPath } from "./lock_path.ts";
import { type LockState, parseLockState } from "./lock_state.ts";
import { nullIfNoNode } from "../request_errors.ts";

export interface LockView {
  /** Guards the grant: a change after this read makes the grant fail. */
  readonly version: number;
  readonly state: LockState;
  /** Data as it was read; it may contain more than the limit. */
  readonly data: Uint8Array;
  /** Zxid of the last write of the data; for a grant this is the fencing token. */
  readonly mzxid: bigint;
  readonly holders: readonly string[];
  /** False when the node for holders does not exist; then there are no holders. */
  readonly hasHolders: boolean;
  readonly queue: readonly string[];
}

export interface ReadLockOptions {
  /** Called when the holders change. */
  readonly watchHolders?: () => void;
}

/**
 * Returns null when the lock does not exist. A missing queue is an empty one: the server removes it when no process waits.
 * The version is read first: a grant between the two reads makes the version stale, but never the list of holders too short.
 * All three requests go in one packet and are executed in order.
 */
export async function readLock(zk: ZooKeeper, path: LockPath, options: ReadLockOptions = {}): Promise<LockView | null> {
  const watch = options.watchHolders;
  const [lock, holders, queue] = await Promise.all([
    nullIfNoNode(zk.getData(path.lock)),
    nullIfNoNode(zk.getChildren(path.holders, watch === undefined ? {} : { watch })),
    nullIfNoNode(zk.getChildren(path.queue)),
  ]);
  if (lock === null) return null;
  return {
    version: lock.stat.version,
    state: parseLockState(lock.data, path.lock),
    data: lock.data,
    mzxid: lock.stat.mzxid,
    holders: holders?.children ?? [],
    hasHolders: holders !== null,
    queue: queue?.children ?? [],
  };
}
