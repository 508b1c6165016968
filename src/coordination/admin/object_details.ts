/** Reads the holders and waiters of a lock, an election, a barrier or a gate, as rows. */
import {
  type CoordinationObjectDetails,
  type CoordinationObjectKind,
  coordinationObjectKinds,
  type CoordinationObjectRow,
  type HolderRow,
  type WaiterRow,
} from "../../base/rows/object_row.ts";
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { isInCurrentBarrierGeneration, parseBarrierParticipantNodes } from "../barrier/barrier_state.ts";
import { type BarrierParticipantStatus, readBarrierParticipants, readBarrierView } from "../barrier/barrier_view.ts";
import { coordinationObjectPath, electionPath, lockPath } from "../nodes/node_paths.ts";
import type { InteropRecipe } from "../nodes/interop_node_names.ts";
import { readInteropLockStatus } from "../interop/interop_status.ts";
import { parseHolderNodeInfo } from "../nodes/holder_info.ts";
import { holderOrWaiterRow } from "../nodes/participant_row.ts";
import { type LockHolderStatus, lockStatus, type LockWaiterStatus } from "../lock/lock_status.ts";
import { hiddenIfNoAuth, mapInBatches, nullIfNoNode, readAfterSync, readTwiceAtMost } from "../nodes/node_requests.ts";
import { objectDetailsKey } from "../../base/rows/row_kinds.ts";
import type { ObjectsInUse } from "./list_in_use.ts";

export interface ObjectDetailsOptions {
  readonly kind: CoordinationObjectKind;
  readonly name: string;
  readonly root?: string;
  /** The recipe of the program that uses the lock; `name` is then the path of the lock. */
  readonly recipe?: InteropRecipe | undefined;
}

/**
 * Reads the holders and waiters of an object; an object that does not exist has none. Reads again if the connection is
 * lost. Throws CONFIG for a lock of another recipe.
 */
export async function readObjectDetails(
  zk: ZooKeeper,
  options: ObjectDetailsOptions,
): Promise<CoordinationObjectDetails> {
  const { kind, name, root, recipe } = options;
  return await readTwiceAtMost(zk, () => {
    if (recipe === undefined && kind === "barrier") return barrierDetails(zk, name, root);
    if (recipe === undefined && kind === "gate") return gateDetails(zk, name, root);
    return queueDetails(zk, options);
  });
}

async function queueDetails(
  zk: ZooKeeper,
  { kind, name, root, recipe }: ObjectDetailsOptions,
): Promise<CoordinationObjectDetails> {
  const status = recipe !== undefined
    ? await readInteropLockStatus(zk, name, { recipe, refusesOthers: true })
    : await lockStatus(zk, name, { path: kind === "election" ? electionPath(name, root) : lockPath(name, root) });
  const { path, limit, holders, waiters } = status;
  return {
    kind: recipe === undefined ? kind : "lock",
    name,
    path,
    limit,
    holders: holders.map(lockHolderRow),
    waiters: waiters.map((waiter) => ({
      ...lockWaiterRow(waiter),
      ...(recipe === undefined ? {} : { priority: null }),
    })),
  };
}

export function lockHolderRow(holder: LockHolderStatus): HolderRow {
  const { holderId: id, slot, fencingToken } = holder;
  return { ...holderOrWaiterRow({ ...holder, id }), slot, rank: null, fencing_token: String(fencingToken) };
}

export function lockWaiterRow(waiter: LockWaiterStatus): WaiterRow {
  const { holderId: id, place, priority } = waiter;
  return { ...holderOrWaiterRow({ ...waiter, id }), place, priority };
}

async function barrierDetails(
  zk: ZooKeeper,
  name: string,
  root: string | undefined,
): Promise<CoordinationObjectDetails> {
  const path = coordinationObjectPath("barriers", name, root);
  const view = await readAfterSync(zk, path, () => readBarrierView(zk, path));
  const participants = await readBarrierParticipants(zk, path, parseBarrierParticipantNodes(view?.children ?? []));
  const { started = null } = view?.state ?? {};
  const isWaiting = ({ node }: BarrierParticipantStatus) =>
    view !== null && isInCurrentBarrierGeneration(view.state, node);
  const common = (status: BarrierParticipantStatus) =>
    holderOrWaiterRow({ ...status, id: status.node.guid, mode: null });
  const rankOf = ({ node }: BarrierParticipantStatus) => {
    const rank = started?.members.indexOf(node.guid) ?? -1;
    return rank === -1 ? null : rank;
  };
  const inside = participants.filter((participant) => !isWaiting(participant)).map((participant) => ({
    ...common(participant),
    slot: null,
    rank: rankOf(participant),
    fencing_token: started?.token.toString() ?? null,
  }));
  const waiting = participants.filter(isWaiting);
  return {
    kind: "barrier",
    name,
    path,
    limit: waiting[0]?.node.parties ?? null,
    holders: inside.sort((left, right) => (left.rank ?? Infinity) - (right.rank ?? Infinity)),
    waiters: waiting.map((participant, index) => ({ ...common(participant), place: index + 1, priority: null })),
  };
}

async function gateDetails(zk: ZooKeeper, name: string, root: string | undefined): Promise<CoordinationObjectDetails> {
  const gate = coordinationObjectPath("gates", name, root);
  const found = await readAfterSync(zk, gate, () => nullIfNoNode(zk.getData(gate)));
  const closer = (data: Uint8Array): HolderRow => ({
    ...holderOrWaiterRow({ ...parseHolderNodeInfo(data), id: null, mode: null, sessionId: null }),
    slot: null,
    rank: null,
    fencing_token: null,
  });
  const holders = found === null ? [] : [closer(found.data)];
  return { kind: "gate", name, path: gate, limit: null, holders, waiters: [] };
}

/** Returns the kinds of objects that are in use under a name. */
export async function findObjectKinds(
  zk: ZooKeeper,
  name: string,
  root?: string,
): Promise<readonly CoordinationObjectKind[]> {
  const paths: Record<CoordinationObjectKind, readonly string[]> = {
    lock: nodesInUse(lockPath(name, root)),
    election: nodesInUse(electionPath(name, root)),
    barrier: [coordinationObjectPath("barriers", name, root)],
    gate: [coordinationObjectPath("gates", name, root)],
  };
  const found = await Promise.all(coordinationObjectKinds.map(async (kind) => {
    const stats = await Promise.all(paths[kind].map((path) => hiddenIfNoAuth(zk.exists(path))));
    return stats.some((stat) => stat !== null && stat !== "hidden" && (kind === "gate" || stat.numChildren > 0));
  }));
  return coordinationObjectKinds.filter((_, index) => found[index]);
}

const nodesInUse = ({ holders, queue }: { holders: string; queue: string }) => [holders, queue];

const batchSize = 50;

interface ReadDetailsOptions {
  readonly root: string;
  /** The most objects to read. Objects with the longest queues come first; the other objects have no details. */
  readonly max: number;
}

/**
 * Returns the details of all used objects that no ACL hides, by `objectDetailsKey`. The jobs of a pool appear as locks.
 */
export async function readDetailsOfUsedObjects(
  zk: ZooKeeper,
  found: ObjectsInUse,
  { root, max }: ReadDetailsOptions,
): Promise<ReadonlyMap<string, CoordinationObjectDetails>> {
  const wanted = coordinationObjectKinds.flatMap((kind) =>
    found[kind].filter(isVisible).map((one) => ({ ...one, kind }))
  );
  const longest = wanted.length <= max
    ? wanted
    : wanted.sort((a, b) => (b.waiters ?? 0) - (a.waiters ?? 0)).slice(0, max);
  const read = await mapInBatches(
    longest,
    batchSize,
    ({ kind, name }) => hiddenIfNoAuth(readObjectDetails(zk, { kind, name, root })),
  );
  return new Map(read.filter((one) => one !== "hidden").map((one) => [objectDetailsKey(one.kind, one.name), one]));
}

const isVisible = ({ holders, waiters }: CoordinationObjectRow) => (holders ?? 0) + (waiters ?? 0) > 0;
