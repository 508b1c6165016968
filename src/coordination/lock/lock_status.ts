/** Reads the holders and waiters of a lock, for people to read and for messages about a busy lock. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { type HolderNodeInfo, nameOfHolder, parseHolderNodeInfo } from "../nodes/holder_info.ts";
import type { LockMode } from "../../base/process/lease.ts";
import { parseContenderNode, parseHolderNode } from "./lock_nodes.ts";
import { type LockPath, lockPath } from "../nodes/node_paths.ts";
import { readLockView } from "./lock_state.ts";
import { readAfterSync, readExistingNodes, readTwiceAtMost } from "../nodes/node_requests.ts";
import { contenderComesBefore, exclusiveLockGrantsMax, holdingLockGrants } from "./queue_position.ts";
import { formatDuration } from "../../base/support/duration.ts";
import { printable } from "../../base/support/text.ts";

export interface LockHolderStatus extends HolderNodeInfo {
  /** The ID that `break --holder` accepts. */
  readonly holderId: string;
  readonly mode: LockMode;
  /** The number of the permit; null for the other modes. */
  readonly slot: number | null;
  readonly fencingToken: bigint;
  readonly sessionId: bigint;
}

export interface LockWaiterStatus extends HolderNodeInfo {
  readonly holderId: string;
  readonly mode: LockMode;
  readonly priority: number;
  /** Place in the queue; 1 is the next. */
  readonly place: number;
  readonly sessionId: bigint;
}

export interface LockStatus {
  readonly name: string;
  readonly path: string;
  /** The number of permits; null until the first request for a permit. */
  readonly limit: number | null;
  /** Sorted by the time of the grant, the oldest first. */
  readonly holders: readonly LockHolderStatus[];
  /** Sorted as in the queue. */
  readonly waiters: readonly LockWaiterStatus[];
}

export interface LockStatusOptions {
  readonly root?: string;
  readonly path?: LockPath;
  /** The most holders and waiters whose details are read; by default all. */
  readonly detailsMax?: number;
}

/**
 * Reads the holders and waiters of a lock; a lock that does not exist has none. Reads again if the connection is lost.
 */
export async function lockStatus(zk: ZooKeeper, name: string, options: LockStatusOptions = {}): Promise<LockStatus> {
  return await readTwiceAtMost(zk, () => readLockStatus(zk, name, options));
}

async function readLockStatus(zk: ZooKeeper, name: string, options: LockStatusOptions): Promise<LockStatus> {
  const path = options.path ?? lockPath(name, options.root);
  const view = await readAfterSync(zk, path.lock, () => readLockView(zk, path));
  const detailsMax = options.detailsMax ?? Number.POSITIVE_INFINITY;
  const contenders = (view?.queue ?? []).map(parseContenderNode).filter((node) => node !== null);
  contenders.sort((left, right) => (contenderComesBefore(left, right) ? -1 : 1));
  const grants = (view?.grants ?? []).map(parseHolderNode).filter((node) => node !== null);
  const [granted, queued] = await Promise.all([
    // The ages show which of several exclusive grants holds the lock.
    readExistingNodes(zk, path.holders, grants.slice(0, Math.max(detailsMax, exclusiveLockGrantsMax))),
    readExistingNodes(zk, path.queue, contenders.slice(0, detailsMax)),
  ]);
  granted.sort((left, right) => (left.stat.czxid < right.stat.czxid ? -1 : 1));
  const held = holdingLockGrants(granted.map(({ node: { guid: holderId, mode, slot }, data, stat }) => {
    return {
      ...parseHolderNodeInfo(data),
      holderId,
      mode,
      slot,
      fencingToken: stat.czxid,
      sessionId: stat.ephemeralOwner,
    };
  }));
  const holders = held.slice(0, detailsMax);
  // A holder whose lock was granted in advance stays in the queue until the release.
  const waiting = contenders.filter(({ guid }) => !held.some(({ holderId }) => holderId === guid));
  return {
    name,
    path: path.lock,
    limit: view?.state.limit ?? null,
    holders,
    waiters: queued.filter(({ node }) => waiting.includes(node)).map(({ node, data, stat: { ephemeralOwner } }) => {
      const { guid: holderId, mode, priority } = node;
      const place = waiting.indexOf(node) + 1;
      return { ...parseHolderNodeInfo(data), holderId, mode, priority, place, sessionId: ephemeralOwner };
    }),
  };
}

const holdersNamedMax = 3;

/**
 * Returns `held for 12 m by root@db1 (pid 812, backup.sh), reason "bulk propagation"; 1 other is waiting`. Does not
 * count the contender `guid`. `nowMs` is in Unix milliseconds.
 */
export function describeLock(
  status: LockStatus,
  { guid, nowMs }: { readonly guid: string; readonly nowMs: number },
): string {
  const others = status.waiters.filter((waiter) => waiter.holderId !== guid).length;
  const waiting = others === 0 ? "" : others === 1 ? "; 1 other is waiting" : `; ${others} others are waiting`;
  return `${describeLockHolders(status, nowMs)}${waiting}`;
}

/** Returns the part of `describeLock` that names the holders. */
export function describeLockHolders({ holders }: LockStatus, nowMs: number): string {
  const named = holders.slice(0, holdersNamedMax).map((holder) => describeHolder(holder, nowMs));
  const more = holders.length - named.length;
  if (more > 0) named.push(`by ${more} more`);
  return named.length === 0 ? "no process holds it at the moment" : `held ${named.join(", ")}`;
}

function describeHolder(holder: LockHolderStatus, nowMs: number): string {
  // The start time is from another machine's wall clock and may be in the future.
  const heldMs = Math.max(0, nowMs - holder.sinceMs);
  const since = holder.sinceMs === 0 ? "" : `for ${formatDuration(heldMs)} `;
  return `${since}by ${nameOfHolder(holder)}${holder.reason === "" ? "" : `, reason "${printable(holder.reason)}"`}`;
}
