/**
 * Waits until the first waiter of a lock has its grant in advance: until then a release may go to a later one, whose
 * grant is not withdrawn yet.
 */
import { parseHolderNode } from "../../src/coordination/lock/lock_nodes.ts";
import { lockPath } from "../../src/coordination/nodes/node_paths.ts";
import { lockStatus } from "../../src/coordination/lock/lock_status.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import { eventually } from "./eventually.ts";

export async function firstWaiterGranted(
  zk: ZooKeeper,
  name: string,
  { root, waiters }: { readonly root: string; readonly waiters: number },
): Promise<void> {
  await eventually(async () => {
    const status = await lockStatus(zk, name, { root });
    const { children } = await zk.getChildren(lockPath(name, root).holders);
    const first = status.waiters[0]?.holderId;
    return status.waiters.length === waiters && children.some((grant) => parseHolderNode(grant)?.guid === first);
  });
}
