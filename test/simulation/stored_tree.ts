/** The nodes and sessions on the disk of a simulated keeper: the truth with which every process must agree. */
import { nodeOf, type StoredRow } from "../../src/keeper/storage/stored_records.ts";
import type { ZNode } from "../../src/keeper/state/tree.ts";
import type { SimDisk } from "./world/sim_disk.ts";
import type { SimWorld } from "./world/sim_world.ts";

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
  readonly #sessions = new Set<bigint>();
  readonly observers: TreeObserver[] = [];

  constructor(world: SimWorld, disk: SimDisk) {
    this.#world = world;
    disk.onFlushed = (nodes, sessions) => this.#flushed(nodes, sessions);
  }

  hasSession(id: bigint): boolean {
    return this.#sessions.has(id);
  }

  get nodes(): Iterable<ZNode> {
    return this.#nodes.values();
  }

  /** The nodes below a path. */
  below(path: string): ZNode[] {
    return [...this.#nodes.values()].filter((node) => node.path.startsWith(`${path}/`));
  }

  at(path: string): ZNode | undefined {
    for (const node of this.#nodes.values()) if (node.path === path) return node;
    return undefined;
  }

  /** Fails the run if ephemeral nodes or sessions are left, when all clients have ended. */
  checkNothingLeft(): void {
    const left = [...this.#nodes.values()].filter(({ ephemeralOwner }) => ephemeralOwner !== 0n);
    if (left.length > 0) this.#world.fail("left nodes", left.map(({ path }) => path).join(", "));
    if (this.#sessions.size > 0) this.#world.fail("left sessions", [...this.#sessions].join(", "));
  }

  #flushed(nodes: readonly StoredRow[], sessions: readonly StoredRow[]): void {
    for (const { id, body } of sessions) body === null ? this.#sessions.delete(id) : this.#sessions.add(id);
    for (const row of nodes) {
      const before = this.#nodes.get(row.id);
      const after = row.body === null ? undefined : nodeOf(row);
      for (const observer of this.observers) observer.nodeChanges(before, after);
      if (after === undefined) this.#nodes.delete(row.id);
      else this.#nodes.set(row.id, after);
    }
    this.#checkOwners();
    for (const observer of this.observers) observer.committed();
  }

  #checkOwners(): void {
    for (const { path, ephemeralOwner } of this.#nodes.values()) {
      if (ephemeralOwner === 0n || this.#sessions.has(ephemeralOwner)) continue;
      this.#world.fail("node of a dead session", `${path} belongs to session ${ephemeralOwner}, which has ended`);
    }
  }
}

export const nameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
