/**
 * The nodes of a keeper, and a record of the nodes that have changed and must be stored. Checks nothing; transaction.ts
 * checks.
 */
import { openAcl } from "../../../protocols/zookeeper/jute/zookeeper_operations.ts";
import type { Acl, Stat } from "../../../protocols/zookeeper/jute/zookeeper_records.ts";

export type NodeKind = "persistent" | "ephemeral" | "container" | "ttl";

/** The last value of a parent's counter of created children, as in ZooKeeper. */
export const childCreationsMax = 0x7fffffff;

export interface ZNode {
  /** The ID of the node's row in the database. */
  readonly id: number;
  readonly path: string;
  readonly kind: NodeKind;
  /** The ID of the session that owns an ephemeral node; 0 for all other nodes. */
  readonly ephemeralOwner: bigint;
  /**
   * How long a TTL node without children may stay unchanged before it is deleted, in milliseconds; 0 for all other
   * nodes.
   */
  readonly ttlMs: number;
  readonly czxid: bigint;
  /** Wall-clock milliseconds, for display. */
  readonly ctime: number;
  data: Uint8Array | null;
  acl: readonly Acl[];
  mzxid: bigint;
  pzxid: bigint;
  mtime: number;
  version: number;
  aversion: number;
  /** The number of children ever created, which is the suffix of the next sequential child. It never decreases. */
  creates: number;
  /** The names of the children; null if there are none, as in most nodes. */
  children: Set<string> | null;
}

/** The bytes that a node takes on the disk in addition to `countNodeBytes`. */
const rowBytes = 256;

export class NodeTree {
  readonly #nodes = new Map<string, ZNode>();
  readonly #ephemerals = new Map<bigint, Set<ZNode>>();
  /** The nodes that may expire: containers and TTL nodes. */
  readonly #expirable = new Set<ZNode>();
  #changed = new Map<number, ZNode | null>();
  #nextId = 1;
  #bytes = 0;
  /** The most bytes that the nodes may have on the disk. */
  #storedBytesMax = Infinity;
  #descendants: DescendantCounts | null = null;

  get size(): number {
    return this.#nodes.size;
  }

  /** The size of all nodes on the disk. */
  get storedBytes(): number {
    return this.#bytes + this.size * rowBytes;
  }

  /** Records that the disk has room for `room` more bytes than `storedBytes`. If `room` is null, changes nothing. */
  limitStoredBytes(storedBytes: number, room: number | null): void {
    if (room !== null) this.#storedBytesMax = storedBytes + room;
  }

  /** Returns true if the disk has room for this many more bytes and nodes. */
  hasDiskFor(bytes: number, nodes: number): boolean {
    return this.storedBytes + bytes + nodes * rowBytes <= this.#storedBytesMax;
  }

  /** The size of all nodes, as `countNodeBytes` counts it. */
  get bytes(): number {
    return this.#bytes;
  }

  get ephemeralCount(): number {
    let count = 0;
    for (const nodes of this.#ephemerals.values()) count += nodes.size;
    return count;
  }

  get nodes(): Iterable<ZNode> {
    return this.#nodes.values();
  }

  get expirableNodes(): Iterable<ZNode> {
    return this.#expirable;
  }

  get hasChanges(): boolean {
    return this.#changed.size > 0;
  }

  /** Returns the node at `path`. Both "" and "/" are the root. */
  get(path: string): ZNode | undefined {
    return this.#nodes.get(path === "" ? "/" : path);
  }

  ephemeralsOf(session: bigint): Iterable<ZNode> {
    return this.#ephemerals.get(session) ?? [];
  }

  ephemeralCountOf(session: bigint): number {
    return this.#ephemerals.get(session)?.size ?? 0;
  }

  newId(): number {
    return this.#nextId++;
  }

  /** Adds a new or restored node. The caller updates the parent's counters. */
  insert(node: ZNode): void {
    this.#nodes.set(node.path, node);
    this.#bytes += countNodeBytes(node);
    this.#descendants?.addToAncestors(node.path, 1);
    this.#nextId = Math.max(this.#nextId, node.id + 1);
    if (node.path !== "/") {
      const parent = parentIn(this.#nodes, node.path);
      parent.children ??= new Set();
      parent.children.add(lastPathPart(node.path));
    }
    if (node.kind === "ephemeral") {
      const own = this.#ephemerals.get(node.ephemeralOwner);
      if (own === undefined) this.#ephemerals.set(node.ephemeralOwner, new Set([node]));
      else own.add(node);
    } else if (node.kind !== "persistent") {
      this.#expirable.add(node);
    }
    this.#changed.set(node.id, node);
  }

  remove(node: ZNode): void {
    this.#nodes.delete(node.path);
    this.#bytes -= countNodeBytes(node);
    this.#descendants?.addToAncestors(node.path, -1);
    const parent = parentIn(this.#nodes, node.path);
    parent.children?.delete(lastPathPart(node.path));
    if (parent.children?.size === 0) parent.children = null;
    if (node.kind === "ephemeral") {
      const own = this.#ephemerals.get(node.ephemeralOwner);
      own?.delete(node);
      if (own?.size === 0) this.#ephemerals.delete(node.ephemeralOwner);
    }
    this.#expirable.delete(node);
    this.#changed.set(node.id, null);
  }

  /** Changes fields that determine a node's size. The caller must call `touch` afterwards. */
  change(node: ZNode, to: Partial<Pick<ZNode, "data" | "acl">>): void {
    this.#bytes -= countNodeBytes(node);
    Object.assign(node, to);
    this.#bytes += countNodeBytes(node);
  }

  /** Records that the node must be stored. The caller does this after any change of a field. */
  touch(node: ZNode): void {
    this.#changed.set(node.id, node);
  }

  /** Returns the nodes changed since the last call, by row ID; null stands for a deleted node. */
  takeChanges(): Map<number, ZNode | null> {
    const changed = this.#changed;
    this.#changed = new Map();
    return changed;
  }

  /** Returns the number of nodes below `node`, at any depth. */
  descendantCount(node: ZNode): number {
    if (node.children === null) return 0;
    this.#descendants ??= new DescendantCounts(this.#nodes.keys());
    return this.#descendants.countBelow(node.path);
  }
}

/** Returns the approximate size of a node's path, data and ACL. */
export function countNodeBytes({ path, data, acl }: Pick<ZNode, "path" | "data" | "acl">): number {
  const bytes = path.length + (data?.byteLength ?? 0);
  return acl === openAcl ? bytes : acl.reduce((sum, { id }) => sum + id.scheme.length + id.id.length, bytes);
}

/** Returns the stat that clients see. In it, a container or TTL node looks like a persistent node. */
export function toNodeStat(node: ZNode): Stat {
  const numChildren = node.children?.size ?? 0;
  return {
    czxid: node.czxid,
    mzxid: node.mzxid,
    ctime: BigInt(node.ctime),
    mtime: BigInt(node.mtime),
    version: node.version,
    cversion: (2 * node.creates - numChildren) | 0,
    aversion: node.aversion,
    ephemeralOwner: node.ephemeralOwner,
    dataLength: node.data?.byteLength ?? 0,
    numChildren,
    pzxid: node.pzxid,
  };
}

export function lastPathPart(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}

function parentIn(nodes: Map<string, ZNode>, path: string): ZNode {
  const parent = nodes.get(path.slice(0, path.lastIndexOf("/")) || "/");
  if (parent === undefined) throw new TypeError(`The node ${path} has no parent`);
  return parent;
}

/**
 * Counts the nodes below each node. Clients rarely ask for this number, so all nodes are counted only at the first
 * request. After that, each new or deleted node updates the counts, because counting again would delay all clients.
 */
export class DescendantCounts {
  readonly #counts = new Map<string, number>();

  constructor(paths: Iterable<string>) {
    for (const path of paths) this.addToAncestors(path, 1);
  }

  /** Counts a new (1) or deleted (-1) node. */
  addToAncestors(path: string, change: 1 | -1): void {
    for (let above = path; above !== "/";) {
      above = above.slice(0, above.lastIndexOf("/")) || "/";
      const count = (this.#counts.get(above) ?? 0) + change;
      if (count === 0) this.#counts.delete(above);
      else this.#counts.set(above, count);
    }
  }

  countBelow(path: string): number {
    return this.#counts.get(path) ?? 0;
  }
}
