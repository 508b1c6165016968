/** Reads a barrier in a safe order, and reads what its participants say about themselves. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { type BarrierParticipantNode, type BarrierState, parseBarrierState } from "./barrier_state.ts";
import { type HolderNodeInfo, parseHolderNodeInfo } from "../nodes/holder_info.ts";
import { nullIfNoNode, readExistingNodes } from "../nodes/node_requests.ts";

export interface BarrierView {
  /** The version of the state. Each write names this version, so it fails after any change. */
  readonly version: number;
  readonly state: BarrierState;
  /** The zxid of the transaction that wrote the state. */
  readonly writtenBy: bigint;
  readonly children: readonly string[];
}

export interface ReadBarrierOptions {
  readonly watchState?: () => void;
  /** Called when a participant comes, leaves or responds. */
  readonly watchChildren?: () => void;
}

/**
 * Reads the state, then the list of names. Returns null if the barrier does not exist. The order matters: while the
 * version is unchanged, no participant can have entered an earlier generation after the list was read.
 */
export async function readBarrierView(
  zk: ZooKeeper,
  barrier: string,
  { watchState, watchChildren }: ReadBarrierOptions = {},
): Promise<BarrierView | null> {
  const [found, list] = await Promise.all([
    nullIfNoNode(zk.getData(barrier, watchState === undefined ? {} : { watch: watchState })),
    nullIfNoNode(zk.getChildren(barrier, watchChildren === undefined ? {} : { watch: watchChildren })),
  ]);
  if (found === null || list === null) return null;
  const { version, mzxid } = found.stat;
  return { version, state: parseBarrierState(found.data, barrier), writtenBy: mzxid, children: list.children };
}

export interface BarrierParticipantStatus extends HolderNodeInfo {
  readonly node: BarrierParticipantNode;
  readonly sessionId: bigint;
}

/** Reads the data of `nodes` that still exist. */
export async function readBarrierParticipants(
  zk: ZooKeeper,
  barrier: string,
  nodes: readonly BarrierParticipantNode[],
): Promise<BarrierParticipantStatus[]> {
  const found = await readExistingNodes(zk, barrier, nodes);
  return found.map(({ node, data, stat }) => ({ ...parseHolderNodeInfo(data), node, sessionId: stat.ephemeralOwner }));
}
