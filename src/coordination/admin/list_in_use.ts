/** Lists all objects below a root node by kind, with the numbers of holders and waiters. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError } from "../../base/errors.ts";
import { coordinationObjectKinds, type CoordinationObjectRow } from "../../base/rows/object_row.ts";
import { isInCurrentBarrierGeneration, parseBarrierParticipantNodes } from "../barrier/barrier_state.ts";
import { readBarrierView } from "../barrier/barrier_view.ts";
import { coordinationFolderPath, decodeLockName, lockPathAt } from "../nodes/node_paths.ts";
import { parseContenderNode, parseHolderNode } from "../lock/lock_nodes.ts";
import { holdingLockGrants } from "../lock/queue_position.ts";
import { hiddenIfNoAuth, mapInBatches, readChildNames } from "../nodes/node_requests.ts";

export const listedObjectKinds = [...coordinationObjectKinds, "pool"] as const;
export type ListedObjectKind = (typeof listedObjectKinds)[number];
export type ObjectsInUse = Readonly<Record<ListedObjectKind, readonly CoordinationObjectRow[]>>;

const batchSize = 200;

type Counts = Omit<CoordinationObjectRow, "name">;

/**
 * Lists the objects of each kind, sorted by name. A kind that was not requested has an empty list. An unused lock is
 * listed until the server removes it, and an election until an operator deletes it. A pool is listed while it runs or
 * has stored results. The jobs of a pool are counted by the locks COMPONENT/ITEM, or by its `total` limit.
 */
export async function listObjectsInUse(
  zk: ZooKeeper,
  { root, kinds = listedObjectKinds }: { readonly root?: string; readonly kinds?: readonly ListedObjectKind[] } = {},
): Promise<ObjectsInUse> {
  const list = (kind: ListedObjectKind, count: (path: string) => Promise<Counts>) =>
    kinds.includes(kind) ? listFolder(zk, coordinationFolderPath(`${kind}s`, root), count) : [];
  const listLocks = () => listFolder(zk, coordinationFolderPath("locks", root), (path) => countLock(zk, path));
  const [lock, election, barrier, gate, pooled] = await Promise.all([
    kinds.includes("lock") ? listLocks() : [],
    list("election", (path) => countLock(zk, path)),
    list("barrier", (path) => countBarrier(zk, path)),
    list("gate", () => Promise.resolve({ holders: 1, waiters: 0 })),
    list("pool", (path) => countLock(zk, `${path}/total`)),
  ]);
  const locks = pooled.length === 0 || kinds.includes("lock") ? lock : await listLocks();
  const pool = pooled.map((one) => ({ ...one, holders: Math.max(one.holders ?? 0, countJobs(one.name, locks)) }));
  return { lock, election, barrier, gate, pool };
}

function countJobs(component: string, locks: readonly CoordinationObjectRow[]): number {
  return locks.filter(({ name, holders }) => holders !== 0 && name.startsWith(`${component}/`)).length;
}

async function listFolder(
  zk: ZooKeeper,
  folder: string,
  count: (path: string) => Promise<Counts>,
): Promise<CoordinationObjectRow[]> {
  const children = [...await readChildNames(zk, folder)].sort();
  return await mapInBatches(children, batchSize, async (child) => ({
    name: decodeLockName(child),
    ...await count(`${folder}/${child}`),
  }));
}

async function countLock(zk: ZooKeeper, at: string): Promise<Counts> {
  const path = lockPathAt(at);
  const [grants = null, queued = null] = await Promise.all([path.holders, path.queue].map(async (folder) => {
    const stat = await hiddenIfNoAuth(zk.exists(folder));
    return stat === "hidden" ? null : stat?.numChildren ?? 0;
  }));
  if (!grants || !queued) return { holders: grants, waiters: queued };
  // A contender with a grant in advance is in both lists, so contenders are counted by name.
  const [granted, queue] = await Promise.all([path.holders, path.queue].map((folder) => {
    return hiddenIfNoAuth(readChildNames(zk, folder));
  }));
  if (!Array.isArray(granted) || !Array.isArray(queue)) return { holders: grants, waiters: queued };
  return countHoldersAndWaiters(granted, queue);
}

/** Counts holders and waiters by the node names in `h` (`granted`) and `q` (`queue`). Pure. */
export function countHoldersAndWaiters(
  granted: readonly string[],
  queue: readonly string[],
): { holders: number; waiters: number } {
  const known = granted.map(parseHolderNode).filter((node) => node !== null);
  const held = holdingLockGrants(known).length;
  const contenders = queue.map(parseContenderNode).filter((node) => node !== null);
  const guids = new Set([...known, ...contenders].map(({ guid }) => guid));
  return { holders: held + granted.length - known.length, waiters: guids.size - held };
}

async function countBarrier(zk: ZooKeeper, barrier: string): Promise<Counts> {
  try {
    const view = await hiddenIfNoAuth(readBarrierView(zk, barrier));
    if (view === "hidden") return { holders: null, waiters: null };
    if (view === null) return { holders: 0, waiters: 0 };
    const participants = parseBarrierParticipantNodes(view.children);
    const waiters = participants.filter((participant) => isInCurrentBarrierGeneration(view.state, participant)).length;
    return { holders: participants.length - waiters, waiters };
  } catch (thrown) {
    const isOtherLayout = thrown instanceof BatonError && thrown.code === "CONFIG";
    if (isOtherLayout) return { holders: 0, waiters: 0 };
    throw thrown;
  }
}

export type LockSummary = CoordinationObjectRow;

export interface ListLocksOptions {
  /** The root node; "/baton" by default. */
  readonly root?: string;
}

/** Lists the locks, sorted by name. An unused lock is listed until the server removes it. */
export async function listLocks(zk: ZooKeeper, options: ListLocksOptions = {}): Promise<readonly LockSummary[]> {
  return (await listObjectsInUse(zk, { ...options, kinds: ["lock"] })).lock;
}
