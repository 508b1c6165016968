/**
 * The state of a lock: the data of its container. Each write checks the version of that node. `readLockView` reads a
 * lock in the order that safety requires.
 */
import { BatonError } from "../../base/errors.ts";
import { demandJsonFields, encodeJson } from "../../base/support/json_fields.ts";
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import type { LockPath } from "../nodes/node_paths.ts";
import { nullIfNoNode, readChildNames } from "../nodes/node_requests.ts";

interface LockState {
  /** The number of permits; null until the first request for a permit. */
  readonly limit: number | null;
}

/** Version of the layout of a lock's nodes. baton rejects locks with another version. */
export const lockLayout = 1;
export const lockLimitMax = 1_000_000;

const initialLockState: LockState = { limit: null };

/** Formats the data of a lock's node. The state may have additional fields. */
export function formatLockState<S extends LockState>(state: S): Uint8Array {
  return encodeJson({ layout: lockLayout, ...state });
}

/**
 * Parses the data of a lock's node. Throws CONFIG for data with another layout. Empty data means the initial state,
 * because an operator may have created the node.
 */
export function parseLockState(data: Uint8Array, path: string): LockState {
  if (data.length === 0) return initialLockState;
  const refuse = (what: string, cause?: unknown) =>
    new BatonError("CONFIG", `"${path}" is not a lock of this version of baton: ${what}`, { cause });
  const { limit = null } = demandJsonFields(data, refuse, lockLayout);
  if (limit === null) return initialLockState;
  if (!isLockLimit(limit)) throw refuse(`its limit is ${JSON.stringify(limit)}`);
  return { limit };
}

export function isLockLimit(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= lockLimitMax;
}

export type StoredLockState = Pick<LockView, "state" | "data" | "mzxid">;

/** The format of the data in the lock's node. A lock stores its limit; an election also stores its history. */
export interface LockStateCodec {
  initial(limit: number | null): Uint8Array;
  /** Returns the data for a write that only changes the version. */
  unchanged(read: StoredLockState): Uint8Array;
  afterGrant(read: StoredLockState, grant: { readonly guid: string; readonly limit: number | null }): Uint8Array;
  /** True if the node must stay when the lock is no longer in use, because the data is still needed. */
  readonly permanent: boolean;
  /** False if the data records each grant as the start of a hold. No grant may then be made in advance. */
  readonly mayAdvance: boolean;
}

export const lockLimitStateCodec: LockStateCodec = {
  initial: (limit) => formatLockState({ limit }),
  unchanged: ({ state }) => formatLockState(state),
  afterGrant: (_, { limit }) => formatLockState({ limit }),
  permanent: false,
  mayAdvance: true,
};

export interface LockView {
  /**
   * The version of the lock's node. The grant names this version, so it fails if the lock has changed after this read.
   */
  readonly version: number;
  readonly state: LockState;
  /** Data of the lock's node; it may contain more than the limit. */
  readonly data: Uint8Array;
  /** The zxid of the last write of the data. After a grant, this zxid is the fencing token. */
  readonly mzxid: bigint;
  /** The children of the node `h`: grants of the holders, and grants in advance. */
  readonly grants: readonly string[];
  /** False if the node `h` does not exist. */
  readonly hasGrantsNode: boolean;
  readonly queue: readonly string[];
}

/**
 * Reads a lock. Returns null if the lock does not exist. `watch` is called when the grants change. A missing queue
 * counts as empty, because the server removes the queue when no process waits. All requests go in one packet and are
 * executed in order. The version is read first: if a grant is made between the reads, the version is then outdated, and
 * a write with it fails.
 */
export async function readLockView(zk: ZooKeeper, path: LockPath, watch?: () => void): Promise<LockView | null> {
  const [lock, grants, queue] = await Promise.all([
    nullIfNoNode(zk.getData(path.lock)),
    nullIfNoNode(zk.getChildren(path.holders, watch === undefined ? {} : { watch })),
    readChildNames(zk, path.queue),
  ]);
  if (lock === null) return null;
  return {
    version: lock.stat.version,
    state: parseLockState(lock.data, path.lock),
    data: lock.data,
    mzxid: lock.stat.mzxid,
    grants: grants?.children ?? [],
    hasGrantsNode: grants !== null,
    queue,
  };
}
