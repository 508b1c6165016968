/**
 * Judges the order of the grants of a lock by the nodes on the keeper's disk: a contender is granted the lock when no
 * other one that it knows of comes before it. Judges, too, that a lock is said to be busy only if it is.
 */
import {
  type ContenderNode,
  parseContenderNode,
  parseHolderNode,
} from "../../../../src/coordination/lock/lock_nodes.ts";
import type { ZNode } from "../../../../src/coordination/keeper/state/tree.ts";
import { nameOf, type StoredTree, type TreeObserver } from "../../../world/stored_tree.ts";
import type { LockOracle } from "./lock_oracle.ts";
import type { SimWorld } from "../../../world/sim_world.ts";

/** A lock whose nodes a commit changes. */
interface ChangedLock {
  /** Its contenders before the commit. */
  readonly queue: readonly ZNode[];
  /** The zxid of its version before the commit. */
  readonly versionZxid: bigint;
  /**
   * The number of its holders and contenders before the commit, and of those that were made since. Some of these may be
   * gone again: a read that was executed before the commit has seen them.
   */
  users: number;
}

export class QueueOracle implements TreeObserver {
  readonly #world: SimWorld;
  readonly #tree: StoredTree;
  readonly #locks: LockOracle;
  readonly #changed = new Map<string, ChangedLock>();
  #granted: { readonly lock: string; readonly node: ZNode }[] = [];
  /** When each lock had several holders and contenders last. */
  readonly #contendedAtMs = new Map<string, number>();

  constructor(world: SimWorld, tree: StoredTree, locks: LockOracle) {
    this.#world = world;
    this.#tree = tree;
    this.#locks = locks;
    tree.observers.push(this);
  }

  /**
   * A contender that does not wait began at `startedMs`, and was told that the lock is busy: there was another one
   * beside it.
   */
  saidBusy(who: string, lock: string, startedMs: number): void {
    const contendedAtMs = this.#contendedAtMs.get(lock) ?? -1;
    this.#world.count("mark lock was busy");
    if (this.#users(lock) > 1 || contendedAtMs >= startedMs) return;
    this.#world.fail(
      "free lock said to be busy",
      `${lock}, to ${who}; nobody else has used it since ${contendedAtMs} ms`,
    );
  }

  nodeChanges(before: ZNode | undefined, after: ZNode | undefined): void {
    const { path } = before ?? after ?? {};
    if (path === undefined) return; // came and went in this commit: the counter of its folder shows it
    // The node of the lock itself changes with each grant, in the same commit.
    const [, lock = path, folder, name] = /^(.*?)\/([hq])(?:\/(.*))?$/.exec(path) ?? [];
    let changed = this.#changed.get(lock);
    if (changed === undefined) {
      const queue = this.#tree.childrenOf(`${lock}/q`);
      changed = { queue, versionZxid: this.#tree.at(lock)?.mzxid ?? 0n, users: this.#users(lock) };
      this.#changed.set(lock, changed);
    }
    if (folder === undefined || after === undefined) return;
    if (name === undefined) changed.users += after.creates - (before?.creates ?? 0);
    else if (folder === "h" && before === undefined) this.#granted.push({ lock, node: after });
  }

  committed(): void {
    for (const { lock, node } of this.#granted) this.#judge(lock, node);
    this.#granted = [];
    for (const [lock, { users }] of this.#changed) if (users > 1) this.#contendedAtMs.set(lock, this.#world.nowMs);
    this.#changed.clear();
  }

  #users(lock: string): number {
    return this.#tree.childrenOf(`${lock}/h`).length + this.#tree.childrenOf(`${lock}/q`).length;
  }

  #judge(lock: string, grant: ZNode): void {
    const known = this.#changed.get(lock);
    const guid = parseHolderNode(nameOf(grant.path))?.guid;
    const own = known?.queue.map((node) => parseContenderNode(nameOf(node.path))).find((one) => one?.guid === guid);
    if (known === undefined || own === null || own === undefined) return;
    const holders = new Set(this.#tree.childrenOf(`${lock}/h`).map((node) => parseHolderNode(nameOf(node.path))?.guid));
    for (const node of this.#tree.childrenOf(`${lock}/q`)) {
      const other = parseContenderNode(nameOf(node.path));
      if (other === null || holders.has(other.guid) || !comesBefore(other, own)) continue;
      if (own.mode === "shared" && other.mode === "shared") continue;
      if (!isKnown(other, own, node.czxid < known.versionZxid) || this.#locks.wasDeleted(other.guid)) continue;
      this.#world.fail("passed in the queue", `${own.name} is granted ${lock} before ${other.name}`);
    }
    this.#world.count("mark grant before later contenders", known.queue.length > 1 ? 1 : 0);
  }
}

/** The better priority first, then the one that came first; the guid decides when the server's counter stands still. */
function comesBefore(one: ContenderNode, other: ContenderNode): boolean {
  const [left, right] = [one, other].map(({ priority, sequence }) => priority * 2 ** 33 + sequence) as [number, number];
  return left === right ? one.guid < other.guid : left < right;
}

/**
 * Whether the granted contender had read the queue with the other one in it: it reads the queue after it has come into
 * it, and again after each change of the version.
 */
function isKnown(other: ContenderNode, own: ContenderNode, isOlderThanVersion: boolean): boolean {
  return other.sequence < own.sequence || isOlderThanVersion;
}
