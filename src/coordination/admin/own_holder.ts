/** Finds the node by which a command holds its lock, from the holder ids in the command's environment. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { parseParticipantNode } from "../barrier/barrier_state.ts";
import { readInteropNodeGuid } from "../interop/interop_node_names.ts";
import { parseHolderNode } from "../lock/lock_nodes.ts";
import { readAfterSync, readChildNames, readTwiceAtMost } from "../nodes/node_requests.ts";

export interface OwnHolderNode {
  /** Path of the holder's node. */
  readonly node: string;
  /** Fencing token; null at a barrier, where the nodes of the members are older than their token. */
  readonly token: bigint | null;
}

/**
 * Returns null when none of `ids` holds the lock, the leadership or the place at the barrier at `path`. The result was
 * true at some moment after the call. Reads again if the connection is lost.
 */
export async function findOwnHolderNode(
  zk: ZooKeeper,
  path: string,
  ids: readonly string[],
): Promise<OwnHolderNode | null> {
  return await readTwiceAtMost(zk, () => readOwnHolder(zk, path, ids));
}

async function readOwnHolder(zk: ZooKeeper, path: string, ids: readonly string[]): Promise<OwnHolderNode | null> {
  const reading = () => Promise.all([readChildNames(zk, `${path}/h`), readChildNames(zk, path)]);
  const [holders, own] = await readAfterSync(zk, path, reading);
  const participant = own.find((name) => ids.includes(parseParticipantNode(name)?.guid ?? ""));
  if (participant !== undefined) return { node: `${path}/${participant}`, token: null };
  const holder = holders.find((name) => ids.includes(parseHolderNode(name)?.guid ?? ""));
  // A contender of an interop lock whose command runs was granted the lock.
  const interop = own.find((name) => ids.includes(readInteropNodeGuid(name)));
  if (holder === undefined && interop === undefined) return null;
  const node = holder === undefined ? `${path}/${interop}` : `${path}/h/${holder}`;
  const stat = await zk.exists(node);
  return stat === null ? null : { node, token: stat.czxid };
}
