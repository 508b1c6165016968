/** Reads the holders and waiters of a lock, an election, a barrier or a gate, in one shape. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { isInCurrentBarrierGeneration, parseParticipantNodes } from "../barrier/barrier_state.ts";
import { type ParticipantStatus, readBarrierView, readParticipantStatuses } from "../barrier/barrier_view.ts";
import { coordinationObjectPath, electionPath, lockPath } from "../nodes/node_paths.ts";
import type { InteropRecipe } from "../interop/interop_node_names.ts";
import { readInteropLockStatus } from "../interop/interop_status.ts";
import { type HolderNodeInfo, parseHolderNodeInfo } from "../nodes/holder_info.ts";
import type { LockMode } from "../../base/process/lease.ts";
import { lockStatus } from "../lock/lock_status.ts";
import { hiddenIfNoAuth, mapInBatches, nullIfNoNode, readAfterSync, readTwiceAtMost } from "../nodes/node_requests.ts";
import type { KindInUse, ObjectInUse, ObjectsInUse } from "./list_in_use.ts";

/** Kinds of objects that `who` can show. */
export const useStatusKinds = ["lock", "election", "barrier", "gate"] as const;
export type UseStatusKind = (typeof useStatusKinds)[number];

interface UseParticipant extends HolderNodeInfo {
  /** Id for `break --holder`; null for a gate, which belongs to no process. */
  readonly id: string | null;
  readonly mode: LockMode | null;
  readonly sessionId: bigint | null;
}

export interface UseHolder extends UseParticipant {
  readonly slot: number | null;
  /** Rank of a barrier's member. */
  readonly rank: number | null;
  readonly fencingToken: bigint | null;
}

export interface UseWaiter extends UseParticipant {
  /** Place in the queue, from 1; at a barrier the order of arrival. */
  readonly place: number;
}

export interface UseStatus {
  readonly kind: UseStatusKind;
  readonly name: string;
  readonly path: string;
  /** Permits of a lock, null until the first request for one; members that a barrier needs, null when none waits. */
  readonly limit: number | null;
  readonly holders: readonly UseHolder[];
  readonly waiters: readonly UseWaiter[];
}

export interface UseStatusOptions {
  readonly kind: UseStatusKind;
  readonly name: string;
  readonly root?: string;
  /** The name is the path of a lock of this recipe. */
  readonly recipe?: InteropRecipe | undefined;
}

/**
 * An object that does not exist has neither holders nor waiters. Reads again if the connection is lost. Throws CONFIG
 * for a lock of another recipe.
 */
export async function readUseStatus(zk: ZooKeeper, options: UseStatusOptions): Promise<UseStatus> {
  const { kind, name, root, recipe } = options;
  return await readTwiceAtMost(zk, () => {
    if (recipe === undefined && kind === "barrier") return barrierUseStatus(zk, name, root);
    if (recipe === undefined && kind === "gate") return gateUseStatus(zk, name, root);
    return queueUseStatus(zk, options);
  });
}

async function queueUseStatus(zk: ZooKeeper, { kind, name, root, recipe }: UseStatusOptions): Promise<UseStatus> {
  const status = recipe !== undefined
    ? await readInteropLockStatus(zk, name, { recipe, refusesOthers: true })
    : await lockStatus(zk, name, { path: kind === "election" ? electionPath(name, root) : lockPath(name, root) });
  return {
    ...status,
    kind: recipe === undefined ? kind : "lock",
    holders: status.holders.map(({ holderId: id, ...rest }) => ({ ...rest, id, rank: null })),
    waiters: status.waiters.map(({ holderId: id, priority, ...rest }) => {
      return { ...rest, id, ...(recipe === undefined ? { priority } : {}) };
    }),
  };
}

async function barrierUseStatus(zk: ZooKeeper, name: string, root: string | undefined): Promise<UseStatus> {
  const path = coordinationObjectPath("barriers", name, root);
  const view = await readAfterSync(zk, path, () => readBarrierView(zk, path));
  const participants = await readParticipantStatuses(zk, path, parseParticipantNodes(view?.children ?? []));
  const { started = null } = view?.state ?? {};
  const isWaiting = ({ node }: ParticipantStatus) => view !== null && isInCurrentBarrierGeneration(view.state, node);
  const common = (status: ParticipantStatus) => ({ ...status, id: status.node.guid, mode: null });
  const rankOf = ({ node }: ParticipantStatus) => {
    const rank = started?.members.indexOf(node.guid) ?? -1;
    return rank === -1 ? null : rank;
  };
  const inside = participants.filter((participant) => !isWaiting(participant)).map((participant) => ({
    ...common(participant),
    slot: null,
    rank: rankOf(participant),
    fencingToken: started?.token ?? null,
  }));
  const waiting = participants.filter(isWaiting);
  return {
    kind: "barrier",
    name,
    path,
    limit: waiting[0]?.node.parties ?? null,
    holders: inside.sort((left, right) => (left.rank ?? Infinity) - (right.rank ?? Infinity)),
    waiters: waiting.map((participant, index) => ({ ...common(participant), place: index + 1 })),
  };
}

async function gateUseStatus(zk: ZooKeeper, name: string, root: string | undefined): Promise<UseStatus> {
  const gate = coordinationObjectPath("gates", name, root);
  const found = await readAfterSync(zk, gate, () => nullIfNoNode(zk.getData(gate)));
  const unowned = { id: null, mode: null, sessionId: null, slot: null, rank: null, fencingToken: null };
  const holders = found === null ? [] : [{ ...parseHolderNodeInfo(found.data), ...unowned }];
  return { kind: "gate", name, path: gate, limit: null, holders, waiters: [] };
}

/** Returns the other kinds of objects that exist under a name, for a message. */
export async function findOtherUses(
  zk: ZooKeeper,
  { kind, name, root }: { readonly kind: UseStatusKind; readonly name: string; readonly root?: string },
): Promise<readonly UseStatusKind[]> {
  const paths: Record<UseStatusKind, readonly string[]> = {
    lock: nodesInUse(lockPath(name, root)),
    election: nodesInUse(electionPath(name, root)),
    barrier: [coordinationObjectPath("barriers", name, root)],
    gate: [coordinationObjectPath("gates", name, root)],
  };
  const found = await Promise.all(useStatusKinds.map(async (other) => {
    if (other === kind) return false;
    const stats = await Promise.all(paths[other].map((path) => hiddenIfNoAuth(zk.exists(path))));
    return stats.some((stat) => stat !== null && stat !== "hidden" && (other === "gate" || stat.numChildren > 0));
  }));
  return useStatusKinds.filter((_, index) => found[index]);
}

const nodesInUse = ({ holders, queue }: { holders: string; queue: string }) => [holders, queue];

/** The number of locks that are read at the same time. */
const batchSize = 50;

interface ReadDetailsOptions {
  readonly root: string;
  /** The maximum number of objects to read, those with the longest queues; the others have no details. */
  readonly max: number;
}

/** Returns the status by `kind name` of what is in use and not hidden by an ACL. The jobs of a pool are locks. */
export async function readUseDetails(
  zk: ZooKeeper,
  found: ObjectsInUse,
  { root, max }: ReadDetailsOptions,
): Promise<ReadonlyMap<string, UseStatus>> {
  const wanted = useStatusKinds.flatMap((kind) => found[kind].filter(isVisible).map((one) => ({ ...one, kind })));
  const longest = wanted.length <= max
    ? wanted
    : wanted.sort((a, b) => (b.waiters ?? 0) - (a.waiters ?? 0)).slice(0, max);
  const read = await mapInBatches(
    longest,
    batchSize,
    ({ kind, name }) => hiddenIfNoAuth(readUseStatus(zk, { kind, name, root })),
  );
  return new Map(read.filter((one) => one !== "hidden").map((one) => [useDetailsKey(one.kind, one.name), one]));
}

export const useDetailsKey = (kind: KindInUse | UseStatusKind, name: string): string => `${kind} ${name}`;

const isVisible = ({ holders, waiters }: ObjectInUse) => (holders ?? 0) + (waiters ?? 0) > 0;
