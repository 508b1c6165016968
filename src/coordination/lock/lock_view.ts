/** Reads a lock, in the order that its safety needs. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import type { LockPath } from "./lock_path.ts";
import { type LockState, parseLockState } from "./lock_state.ts";
import { nullIfNoNode } from "../request_errors.ts";

export interface LockView {
  /** Guards the grant: whatever came after it was read makes the grant fail. */
  readonly version: number;
  readonly state: LockState;
  /** As it was read: a recipe may keep more in it than a limit. */
  readonly data: Uint8Array;
  /** Of the write that made the data: of a grant it is the token. */
  readonly mzxid: bigint;
  readonly holders: readonly string[];
  /** False when there is no node for holders, which counts as no holders. */
  readonly hasHolders: boolean;
  readonly queue: readonly string[];
}

export interface ReadLockOptions {
  /** Called when the holders change. */
  readonly watchHolders?: () => void;
}

/**
 * Null when there is no such lock. A queue is reaped while the lock is held and nobody waits: no node for it is an empty
 * one. The version is asked for first: a grant between it and the list of holders then makes the version stale, never the
 * list too short. All three requests leave in one write and are answered in order.
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
