/** The nodes and sessions on the disk of a simulated keeper: the truth with which every process must agree. */
import { decodeKeeperNode, type KeeperDatabaseRow } from "../../src/coordination/keeper/storage/keeper_rows.ts";
import type { ZNode } from "../../src/coordination/keeper/state/tree.ts";
import type { SimDisk } from "./sim_disk.ts";
import type { SimWorld } from "./sim_world.ts";

/** Judges what is on the disk. */
export interface TreeObserver {
  /** A node comes, changes or goes; undefined: it is not there. Called before the change. */
  nodeChanges(before: ZNode | undefined, after: ZNode | undefined): void;
  /** All changes of a commit are on the disk. */
  committed(): void;
}

export class StoredTree {
  readonly #world: SimWorld;
  readonly #nodes = new Map<bigint, ZNode>();
  /** The children of each node by their names. */
  readonly #children = new Map<string, Map<string, ZNode>>();
  readonly #sessions = new Set<bigint>();
  readonly observers: TreeObserver[] = [];

  constructor(world: SimWorld, disk: SimDisk) {
    this.#world = world;
    disk.onFlushed = (nodes, sessions) => this.#flushed(nodes, sessions);
  }

  hasSession(id: bigint): boolean {
    return this.#sessions.has(id);
  }

  /** The children of a node, in the order in which they were stored. */
  childrenOf(path: string): ZNode[] {
    return [...this.#children.get(path)?.values() ?? []];
  }

  /** All nodes below a node. */
  below(path: string): ZNode[] {
    return this.childrenOf(path).flatMap((child) => [child, ...this.below(child.path)]);
  }

  at(path: string): ZNode | undefined {
    return this.#children.get(parentOf(path))?.get(nameOf(path));
  }

  /** Fails the run if ephemeral nodes or sessions are left, when all clients have ended. */
  checkNothingLeft(): void {
    const left = [...this.#nodes.values()].filter(({ ephemeralOwner }) => ephemeralOwner !== 0n);
    if (left.length > 0) this.#world.fail("left nodes", left.map(({ path }) => path).join(", "));
    if (this.#sessions.size > 0) this.#world.fail("left sessions", [...this.#sessions].join(", "));
  }

  #flushed(nodes: readonly KeeperDatabaseRow[], sessions: readonly KeeperDatabaseRow[]): void {
    for (const { id, body } of sessions) body === null ? this.#sessions.delete(id) : this.#sessions.add(id);
    const changed: (ZNode | undefined)[] = [];
    for (const row of nodes) {
      const before = this.#nodes.get(row.id);
      const after = row.body === null ? undefined : decodeKeeperNode(row);
      for (const observer of this.observers) observer.nodeChanges(before, after);
      if (after !== undefined) this.#store(row.id, after);
      else if (before !== undefined) this.#remove(row.id, before);
      changed.push(after);
    }
    // A session that has ended leaves no node; without one, only changed nodes can belong to a session that is not
    // there.
    this.#checkOwners(sessions.some(({ body }) => body === null) ? this.#nodes.values() : changed);
    for (const observer of this.observers) observer.committed();
  }

  #store(id: bigint, node: ZNode): void {
    const parent = parentOf(node.path);
    const children = this.#children.get(parent) ?? new Map<string, ZNode>();
    this.#nodes.set(id, node);
    this.#children.set(parent, children.set(nameOf(node.path), node));
  }

  #remove(id: bigint, { path }: ZNode): void {
    this.#nodes.delete(id);
    this.#children.get(parentOf(path))?.delete(nameOf(path));
  }

  #checkOwners(nodes: Iterable<ZNode | undefined>): void {
    for (const node of nodes) {
      if (node === undefined) continue;
      const { path, ephemeralOwner } = node;
      if (ephemeralOwner === 0n || this.#sessions.has(ephemeralOwner)) continue;
      this.#world.fail("node of a dead session", `${path} belongs to session ${ephemeralOwner}, which has ended`);
    }
  }
}

const parentOf = (path: string): string => path.slice(0, path.lastIndexOf("/"));
export const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
