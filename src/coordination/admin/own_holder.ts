/** The node by which a job holds its lock, found by the ids in the job's environment: a look, for whoever is part of the job. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { parseParticipant } from "../barrier/barrier_nodes.ts";
import { guidOfInteropNode } from "../interop/interop_node_names.ts";
import { parseHolder } from "../lock/lock_nodes.ts";
import { isTransient, nullIfNoNode } from "../request_errors.ts";

export interface OwnHolder {
  /** Its path. */
  readonly node: string;
  /** Null at a barrier, whose members' nodes are older than their token. */
  readonly token: bigint | null;
}

/**
 * Null when the lock, the leadership or the place at the barrier at `path` is held by none of `ids`. What it says was true
 * at some moment after the call. A connection that is lost meanwhile costs nothing: a look can be taken again.
 */
export async function ownHolder(zk: ZooKeeper, path: string, ids: readonly string[]): Promise<OwnHolder | null> {
  try {
    return await look(zk, path, ids);
  } catch (thrown) {
    if (!isTransient(thrown) || zk.session.ended.aborted) throw thrown;
    return await look(zk, path, ids);
  }
}

async function look(zk: ZooKeeper, path: string, ids: readonly string[]): Promise<OwnHolder | null> {
  // In one write with the reads behind it: a follower that lags would not know of a holder who has just been granted it.
  const [, holders, own] = await Promise.all([
    zk.sync(path),
    nullIfNoNode(zk.getChildren(`${path}/h`)),
    nullIfNoNode(zk.getChildren(path)),
  ]);
  const party = own?.children.find((name) => ids.includes(parseParticipant(name)?.guid ?? ""));
  if (party !== undefined) return { node: `${path}/${party}`, token: null };
  const holder = holders?.children.find((name) => ids.includes(parseHolder(name)?.guid ?? ""));
  // Of a lock by another's recipe: whoever has a job was granted it, so that its place in the line is the first.
  const foreign = own?.children.find((name) => ids.includes(guidOfInteropNode(name)));
  if (holder === undefined && foreign === undefined) return null;
  const node = holder === undefined ? `${path}/${foreign}` : `${path}/h/${holder}`;
  const stat = await zk.exists(node);
  return stat === null ? null : { node, token: stat.czxid };
}
