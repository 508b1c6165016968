/**
 * Lets only one notice be sent for each long hold of a lock, over all hosts. The first caller that finds a hold too
 * long creates `<root>/notices/<00-ff>/<guid of the holder>`. All times are from the servers' clock.
 */
import type { Acl, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import type { Clock } from "../../base/support/clock.ts";
import { newGuid } from "../../base/support/guid.ts";
import { encodeJson } from "../../base/support/json_fields.ts";
import { createFlag } from "../../protocols/zookeeper/jute/zookeeper_operations.ts";
import { type HolderNodeInfo, parseHolderNodeInfo } from "../nodes/holder_info.ts";
import { createContainerRequest, createParentNodes } from "../nodes/create_nodes.ts";
import { parseHolderNode } from "../lock/lock_nodes.ts";
import { coordinationFolderPath, type LockPath } from "../nodes/node_paths.ts";
import { holdingLockGrants } from "../lock/queue_position.ts";
import {
  deleteNodeIfThere,
  isServerRefusal,
  nullIfNoNode,
  readChildNames,
  readExistingNodes,
  retryOnConnectionLoss,
} from "../nodes/node_requests.ts";
import { clearOldHistoriesInShard } from "./clear_history.ts";

export interface OldestLockHold {
  readonly guid: string;
  readonly info: HolderNodeInfo;
  /** The start of the hold, on the servers' clock. */
  readonly sinceMs: number;
}

/** Returns the start of a hold from the holder's node, on the servers' clock. */
export function lockHoldStartMs(
  { data, stat }: {
    readonly data: Uint8Array;
    readonly stat: { readonly version: number; readonly ctime: bigint; readonly mtime: bigint };
  },
): number {
  // A holder whose lock was granted in advance writes its node when its hold begins. A request to release the lock also
  // writes the node.
  const hasBegun = stat.version > (parseHolderNodeInfo(data).revoke === null ? 0 : 1);
  return Number(hasBegun ? stat.mtime : stat.ctime);
}

/** Returns the oldest hold of a lock, or null if the lock is free. */
export async function readOldestLockHold(zk: ZooKeeper, path: LockPath): Promise<OldestLockHold | null> {
  const grants = (await readChildNames(zk, path.holders)).map(parseHolderNode).filter((node) => node !== null);
  const nodes = await readExistingNodes(zk, path.holders, grants);
  nodes.sort((left, right) => (left.stat.czxid < right.stat.czxid ? -1 : 1));
  const [oldest] = holdingLockGrants(nodes.map((read) => ({ ...read, mode: read.node.mode })));
  if (oldest === undefined) return null;
  return { guid: oldest.node.guid, info: parseHolderNodeInfo(oldest.data), sinceMs: lockHoldStartMs(oldest) };
}

/** Returns the servers' time in Unix milliseconds. Creates a node, reads its time of creation, and deletes the node. */
export async function readServersTimeMs(
  zk: ZooKeeper,
  { root, acl }: { readonly root: string; readonly acl: Acl[] },
): Promise<number> {
  const folder = coordinationFolderPath("notices", root);
  const create = () => zk.create(`${folder}/t-`, new Uint8Array(), { mode: "ephemeralSequential", acl });
  let made = await nullIfNoNode(create());
  if (made === null) {
    await createParentNodes(zk, `${folder}/t-`, acl);
    made = await create();
  }
  const stat = made.stat ?? await zk.exists(made.path);
  await deleteNodeIfThere(zk, made.path);
  return Number(stat?.ctime ?? 0);
}

export interface LongHoldNoticeOptions {
  readonly root: string;
  readonly acl: Acl[];
  readonly clock: Clock;
  /** Returns a random number from 0 up to, but not including, 1. */
  readonly random: () => number;
}

/** Returns true to the first caller for this hold, and false to all others. `nowMs` is the servers' time. */
export async function claimLongHoldNotice(
  zk: ZooKeeper,
  { guid }: Pick<OldestLockHold, "guid">,
  { root, acl, clock, random, nowMs }: LongHoldNoticeOptions & { readonly nowMs: number },
): Promise<boolean> {
  const shard = `${coordinationFolderPath("notices", root)}/${guid.slice(0, 2).toLowerCase()}`;
  const path = `${shard}/${guid}`;
  const own = newGuid();
  const create = { type: "create", path, data: encodeJson({ by: own }), acl, flags: createFlag.persistent } as const;
  const isFirst = await retryOnConnectionLoss(zk, async () => {
    for (const more of [[], [createContainerRequest(shard, acl)], []]) {
      try {
        await zk.multi([...more, create]);
        return true;
      } catch (thrown) {
        if (!isServerRefusal(thrown, "NONODE", "NODEEXISTS")) throw thrown;
        // The node may be from an earlier try whose response was lost.
        const found = await nullIfNoNode(zk.getData(path));
        if (found !== null) return new TextDecoder().decode(found.data).includes(own);
      }
    }
    return false;
  }, { clock });
  if (isFirst) {
    await clearOldHistoriesInShard(zk, shard, { nowMs, random, mayClear: () => Promise.resolve(true) }).catch(() => {});
  }
  return isFirst;
}
