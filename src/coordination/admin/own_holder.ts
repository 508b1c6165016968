/** Finds out whether a command still holds its lock, from the holder IDs in the command's environment. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { parseBarrierParticipantNode } from "../barrier/barrier_state.ts";
import { readInteropNodeGuid } from "../nodes/interop_node_names.ts";
import { parseHolderNode } from "../lock/lock_nodes.ts";
import { readAfterSync, readChildNames, readTwiceAtMost } from "../nodes/node_requests.ts";

/**
 * Returns true if one of `ids` holds the lock, the leadership or the place at the barrier at `path`. Reads again if the
 * connection is lost.
 */
export async function isLockHeldByHolderIds(zk: ZooKeeper, path: string, ids: readonly string[]): Promise<boolean> {
  const reading = () => Promise.all([readChildNames(zk, `${path}/h`), readChildNames(zk, path)]);
  const [holders, own] = await readTwiceAtMost(zk, () => readAfterSync(zk, path, reading));
  return holders.some((name) => ids.includes(parseHolderNode(name)?.guid ?? "")) ||
    own.some((name) =>
      ids.includes(parseBarrierParticipantNode(name)?.guid ?? "") ||
      // A contender of an interop lock holds the lock while its command runs.
      ids.includes(readInteropNodeGuid(name))
    );
}
