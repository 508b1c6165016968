/** Acquires a lock that Curator or kazoo programs take too, by their node names and in their order. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { parseNodeInfo, type Revocation } from "../holder_info.ts";
import { acquireByProtocol, type CommonAcquireOptions } from "../lock/acquire_lock.ts";
import type { ZooKeeperLease } from "../zookeeper_lease.ts";
import { InteropContender } from "./interop_contender.ts";
import { type InteropRecipe, isCuratorRevocation } from "./interop_node_names.ts";
import { interopPath } from "./interop_path.ts";
import { interopStatus } from "./interop_status.ts";

export interface AcquireInteropOptions extends CommonAcquireOptions {
  /** The recipe of the other programs. Mode "shared" is for recipes with readers; there are no permits. */
  readonly recipe: InteropRecipe;
}

/** Maximum number of holders and waiters whose details are read for a message. */
const detailsMax = 100;

/** Waits for the lock at `path` and returns the lease. Rejects as `acquireLock` does, and USAGE for a mode without a recipe. */
export async function acquireInteropLock(
  zk: ZooKeeper,
  path: string,
  { recipe, ...options }: AcquireInteropOptions,
): Promise<ZooKeeperLease> {
  return await acquireByProtocol(zk, path, {
    path: interopPath(path),
    newContender: (settings) => new InteropContender(zk, { ...settings, recipe }),
    readStatus: () => interopStatus(zk, path, { recipe, detailsMax }),
    parseRevocation,
  }, options);
}

function parseRevocation(data: Uint8Array): Revocation | null {
  return isCuratorRevocation(data) ? { by: "Curator's Revoker", reason: "" } : parseNodeInfo(data).revoke;
}
