/**
 * Knows the truth about the locks of a simulated world: what is on the keeper's disk. Judges what the contenders
 * believe by it. A grant is in force while its node is on the disk; of exclusive grants, only the oldest.
 */
import { parseHolderNodeInfo } from "../../../../src/coordination/nodes/holder_info.ts";
import { holderNodeName, parseHolderNode } from "../../../../src/coordination/lock/lock_nodes.ts";
import type { ZNode } from "../../../../src/coordination/keeper/state/tree.ts";
import { errorMessage } from "../../../../src/base/errors.ts";
import { isLeaseRevoked, type Lease } from "../../../../src/base/process/lease.ts";
import { onAbort } from "../../../../src/base/support/abort.ts";
import type { ZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper.ts";
import type { SimProcess } from "../../../world/sim_process.ts";
import type { SimWorld } from "../../../world/sim_world.ts";
import { nameOf, type StoredTree, type TreeObserver } from "../../../world/stored_tree.ts";

/** A lease that a process works under. */
export interface LeaseInUse {
  readonly process: SimProcess;
  readonly life: number;
  readonly lease: Lease;
  /** When the process began to work under it. A request to release it may be older. */
  readonly beganMs: number;
  /** The commit of grants after which it was last found to be in force. */
  checkedAt: number;
}

interface LockOracleOptions {
  readonly isEager: boolean;
  readonly sessionTimeoutMs: number;
}

export class LockOracle implements TreeObserver {
  readonly #world: SimWorld;
  readonly #tree: StoredTree;
  readonly #inUse = new Set<LeaseInUse>();
  readonly #lastTokens = new Map<string, bigint>();
  /** Looks at all leases whenever a grant comes or goes, not only when their processes work. */
  readonly #isEager: boolean;
  /** Locks whose grants were changed by the commit. */
  readonly #changed = new Set<string>();
  /** Counts the commits that change grants. */
  #commits = 0;
  /** Grants that an operator may delete. */
  readonly #breakable = new Set<string>();
  /**
   * When the deletion of such a grant, and when a request to release one, was on the disk; by the transaction that made
   * the grant, because a contender that stays in the queue can be granted the lock again at the same path.
   */
  readonly #deletedAtMs = new Map<bigint, number>();
  readonly #askedAtMs = new Map<bigint, number>();
  /** The holders of deleted grants, by their guid. */
  readonly #deletedGuids = new Set<string>();
  /** The longest time until a holder that runs knows that its lock was taken back, in milliseconds. */
  readonly #toldMs: number;

  constructor(world: SimWorld, tree: StoredTree, { isEager, sessionTimeoutMs }: LockOracleOptions) {
    this.#world = world;
    this.#tree = tree;
    this.#isEager = isEager;
    this.#toldMs = 1.2 * sessionTimeoutMs + 2000;
    tree.observers.push(this);
  }

  /** A process that works under a lease now. */
  get holder(): SimProcess | undefined {
    for (const { process, life } of this.#inUse) if (process.life === life) return process;
    return undefined;
  }

  /** A process begins to work under a lease. Checks the lease's token. */
  began(process: SimProcess, lease: Lease): LeaseInUse {
    const used = this.#use(process, lease);
    if (!this.check(used)) return used;
    this.#inUse.add(used);
    if (this.wasDeleted(lease.holderId)) return used; // the next holder may be there already
    const last = this.#lastTokens.get(lease.path) ?? 0n;
    const token = lease.fencingToken;
    if (lease.mode === "exclusive") {
      if (token <= last) this.#world.fail("fencing token", `${process.name} got token ${token} after ${last}`);
      this.#lastTokens.set(lease.path, token);
    }
    const node = grantOf(this.#tree, lease);
    if (node !== undefined && !this.#isTokenOf(lease, node)) {
      this.#world.fail("fencing token", `${process.name} got token ${token}; its grant was made by ${node.czxid}`);
    }
    return used;
  }

  #use(process: SimProcess, lease: Lease): LeaseInUse {
    return { process, life: process.life, lease, beganMs: this.#world.nowMs, checkedAt: -1 };
  }

  /** A process begins to work under a lease under which it has worked before. */
  beganAgain(process: SimProcess, lease: Lease): LeaseInUse {
    const used = this.#use(process, lease);
    if (this.check(used)) this.#inUse.add(used);
    return used;
  }

  /**
   * A lock is lost when its lease is over by the clock, when its session has ended, or when its node was deleted: not
   * sooner.
   */
  judgeLoss({ process, life, lease }: LeaseInUse, session: ZooKeeper["session"]): void {
    onAbort(lease.lost, (reason) => {
      if (process.life !== life || isLeaseRevoked(lease.lost)) return;
      const isOver = process.clock.now() >= session.leaseEndMs() || session.ended.aborted;
      if (isOver || grantOf(this.#tree, lease) === undefined) return;
      this.#world.fail("lost without a reason", `${process.name}: ${errorMessage(reason)}`);
    });
  }

  ended(used: LeaseInUse): void {
    this.#inUse.delete(used);
  }

  /**
   * Whether the process holds, by its own account; fails the run if another one may hold. Call it in a turn of the
   * process.
   */
  check(used: LeaseInUse): boolean {
    const { process, lease } = used;
    if (!lease.isHeld()) return false;
    if (this.#isTakenBack(used)) return true;
    if (used.checkedAt === this.#commits) return true;
    used.checkedAt = this.#commits;
    const grants = grantsOf(this.#tree, lease.path);
    const own = grantOf(this.#tree, lease);
    const what = `${process.name} believes that it holds ${lease.path} with token ${lease.fencingToken}`;
    const state = () => grants.map((node) => `${nameOf(node.path)} by ${node.czxid}`).join(", ");
    if (own === undefined) {
      this.#world.fail("two holders", `${what}, but its grant is not in force; grants: ${state()}`);
    } else if (!isInForce(own, grants, lease)) {
      this.#world.fail("two holders", `${what}, but another grant is in force; grants: ${state()}`);
    }
    return true;
  }

  /** An operator is about to delete this grant, or to ask for it. */
  takesBack(holderPath: string): void {
    this.#breakable.add(holderPath);
  }

  /** Whether an operator has deleted the grant of a contender, which may still be in the queue. */
  wasDeleted(guid: string): boolean {
    return this.#deletedGuids.has(guid);
  }

  /**
   * Whether the grant was deleted by an operator. Fails the run if its holder, which runs, must know that, or that it
   * was asked.
   */
  #isTakenBack({ process, lease, beganMs }: LeaseInUse): boolean {
    const deletedAtMs = this.#deletedAtMs.get(lease.fencingToken);
    const askedAtMs = lease.lost.aborted ? undefined : this.#askedAtMs.get(lease.fencingToken);
    const sinceMs = deletedAtMs ?? askedAtMs ?? Infinity;
    if (this.#world.nowMs > Math.max(sinceMs, process.runsSinceMs, beganMs) + this.#toldMs) {
      this.#world.fail("not told", `${process.name} holds ${pathOfGrant(lease)}, which was taken back at ${sinceMs}`);
    }
    return deletedAtMs !== undefined;
  }

  /** The token is the zxid of the grant's transaction. */
  #isTokenOf({ fencingToken }: Lease, { czxid }: ZNode): boolean {
    return fencingToken === czxid;
  }

  nodeChanges(before: ZNode | undefined, after: ZNode | undefined): void {
    const { path = "", czxid = 0n } = before ?? after ?? {};
    const at = path.indexOf("/h/");
    if (at === -1) return;
    const lock = path.slice(0, at);
    const { nowMs } = this.#world;
    if (after === undefined && this.#breakable.has(path)) {
      this.#deletedAtMs.set(czxid, nowMs);
      this.#deletedGuids.add(parseHolderNode(nameOf(path))?.guid ?? "");
    } else if (after?.data?.length && !this.#askedAtMs.has(czxid) && parseHolderNodeInfo(after.data).revoke !== null) {
      this.#askedAtMs.set(czxid, nowMs);
    }
    this.#changed.add(lock);
    this.#mark(lock, before, after);
  }

  committed(): void {
    if (this.#changed.size === 0) return;
    this.#commits++;
    for (const lock of this.#changed) this.#checkLimits(lock);
    this.#changed.clear();
    if (this.#isEager) this.#checkAll();
  }

  /** Counts the situations that a run must reach. */
  #mark(lock: string, before: ZNode | undefined, after: ZNode | undefined): void {
    const { path = "", ephemeralOwner = 0n } = before ?? after ?? {};
    if (!nameOf(path).startsWith("x")) return;
    const grants = grantsOf(this.#tree, lock);
    if (before === undefined && grants.length > 0) this.#world.count("mark grant in advance");
    if (after !== undefined) return;
    if (!this.#tree.hasSession(ephemeralOwner)) this.#world.count("mark session of a grant ended");
    else if (grants[0] !== before) this.#world.count("mark grant withdrawn");
  }

  /** Grants of one lock that exclude each other. */
  #checkLimits(lock: string): void {
    const slots = new Set<number>();
    for (const { path } of this.#tree.childrenOf(`${lock}/h`)) {
      const slot = parseHolderNode(nameOf(path))?.slot ?? null;
      if (slot === null) continue;
      if (slots.has(slot)) this.#world.fail("slot given twice", `${lock} ${slot}`);
      slots.add(slot);
    }
  }

  #checkAll(): void {
    for (const used of [...this.#inUse]) {
      const { process, life } = used;
      if (process.life !== life) this.#inUse.delete(used);
      else if (process.state === "running") {
        this.#world.visit(process, () => void (this.#inUse.has(used) && this.check(used)));
      }
    }
  }
}

/** The grants of a lock on the disk, the oldest first. */
export function grantsOf(tree: StoredTree, lockPath: string): ZNode[] {
  return tree.childrenOf(`${lockPath}/h`).sort((left, right) => (left.czxid < right.czxid ? -1 : 1));
}

export function grantOf(tree: StoredTree, lease: Lease): ZNode | undefined {
  return tree.at(pathOfGrant(lease));
}

function pathOfGrant({ path, mode, slot, holderId }: Lease): string {
  return `${path}/h/${holderNodeName({ mode, slot, guid: holderId })}`;
}

/** Whether a grant is in force; `grants`: all of the lock, the oldest first. */
export function isInForce(own: ZNode, grants: readonly ZNode[], lease: Lease): boolean {
  const [oldest] = grants;
  if (lease.mode === "exclusive") return oldest === own;
  const modes = grants.map((node) => parseHolderNode(nameOf(node.path))?.mode);
  if (modes.some((mode) => mode !== lease.mode)) return false;
  return lease.mode === "shared" || lease.limit === null || grants.length <= lease.limit;
}
