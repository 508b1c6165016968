/**
 * Writes to ZooKeeper nodes that succeed only while this process holds its locks, even if it was suspended meanwhile.
 */
import { findOwnHolderNode } from "../coordination/admin/own_holder.ts";
import {
  type FencedNodeOperation,
  fencedWrite,
  type FencedWriteResult,
  findReservedNodeFolder,
  type HeldLockNode,
  staleLockHolderError,
} from "../coordination/fence/fenced_write.ts";
import { BatonError } from "../base/errors.ts";
import { abortable } from "../base/support/abort.ts";
import type { Lease } from "../base/process/lease.ts";
import { validateNodePath } from "../protocols/zookeeper/node_path.ts";
import type { Acl, ZooKeeper } from "../protocols/zookeeper/zookeeper.ts";
import { checkedBytes } from "./check_arguments.ts";
import { callLimit, type SessionPlace, SessionSource } from "./session_source.ts";

export interface FenceOptions {
  /** The root of baton's nodes; "/baton" when left out. */
  readonly root?: string;
  /** ACL of created nodes; that of the session when left out. */
  readonly acl?: Acl[];
}

export interface FencedCallOptions {
  /**
   * Time limit for opening the session and finding the holders, in milliseconds; the write is limited by the session
   * timeout.
   */
  readonly wait?: number;
  readonly signal?: AbortSignal;
}

export interface FencedCreateOptions extends FencedCallOptions {
  /** Create missing parents in the same transaction. */
  readonly parents?: boolean;
  /** The server appends a number to the path that is higher than all earlier ones. */
  readonly sequential?: boolean;
}

export interface FencedChangeOptions extends FencedCallOptions {
  /** The version that the node must have; any version when left out. */
  readonly version?: number;
}

/**
 * Each write is one transaction that checks the holder of every lease. All of them reject with STALE_TOKEN if a lock is
 * no longer held (nothing was written), FALSE or NOT_FOUND if the node does not meet the conditions, REFUSED by an ACL,
 * UNREACHABLE if nothing was written, OUTCOME_UNKNOWN if the node may have been written: read it before you repeat the
 * write.
 */
export class Fence implements AsyncDisposable {
  readonly #leases: readonly Lease[];
  readonly #options: FenceOptions;
  readonly #sessions: SessionSource;

  /** `leases`: of locks, elections, barriers or pool items, in any session. Throws USAGE without a lease. */
  constructor(place: SessionPlace, leases: Lease | readonly Lease[], options: FenceOptions = {}) {
    this.#leases = "fencingToken" in leases ? [leases] : leases;
    if (this.#leases.length === 0) throw new BatonError("USAGE", "A fence needs at least one lease");
    this.#options = options;
    this.#sessions = new SessionSource(place);
  }

  /** Sets the data of a node. */
  set(
    path: string,
    data: string | Uint8Array,
    { version = -1, ...limits }: FencedChangeOptions = {},
  ): Promise<FencedWriteResult> {
    return this.#write({ do: "set", path, data: checkedBytes("The data", data), version }, limits);
  }

  /** Creates a node. */
  create(
    path: string,
    data: string | Uint8Array,
    { parents = false, sequential = false, ...limits }: FencedCreateOptions = {},
  ): Promise<FencedWriteResult> {
    return this.#write({ do: "create", path, data: checkedBytes("The data", data), parents, sequential }, limits);
  }

  /** Deletes a node without children. */
  delete(path: string, { version = -1, ...limits }: FencedChangeOptions = {}): Promise<FencedWriteResult> {
    return this.#write({ do: "delete", path, version }, limits);
  }

  /** Closes the connection if this object opened it. */
  async close(): Promise<void> {
    await this.#sessions.close("The fence was closed");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #write(operation: FencedNodeOperation, { wait, signal }: FencedCallOptions): Promise<FencedWriteResult> {
    const { root } = this.#options;
    validateNodePath(operation.path, operation.do === "create" && operation.sequential);
    const folder = findReservedNodeFolder(operation.path, root);
    if (folder !== null) {
      throw new BatonError(
        "USAGE",
        `Cannot ${operation.do} "${operation.path}": baton itself uses the nodes below ${folder}`,
      );
    }
    using limit = callLimit(wait, { signal: signal ?? new AbortController().signal });
    const zk = await this.#sessions.get(limit.signal);
    const finding = Promise.all(this.#leases.map((lease) => heldNode(zk, lease, operation)));
    const held = await abortable(finding, limit.signal);
    return await fencedWrite(zk, operation, { ...this.#options, held });
  }
}

async function heldNode(zk: ZooKeeper, lease: Lease, operation: FencedNodeOperation): Promise<HeldLockNode> {
  const { name } = lease;
  const holder = lease.isHeld() ? await findOwnHolderNode(zk, lease.path, [lease.holderId]) : null;
  if (holder === null) throw staleLockHolderError({ name, node: null }, operation);
  return { name, node: holder.node };
}
