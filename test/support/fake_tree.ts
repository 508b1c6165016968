/**
 * A coordination server's tree in memory, as far as recipes need it: versions, sequences, ephemerals, containers,
 * watches.
 */
import { givenUpOperationError, ZooKeeperError } from "../../src/protocols/zookeeper/zookeeper_error.ts";
import type { MultiRequest, MultiResult, Stat, Watcher, WatchEvent } from "../../src/protocols/zookeeper/zookeeper.ts";
import type { ZooKeeperErrorName } from "../../src/protocols/zookeeper/jute/zookeeper_error_codes.ts";
import { createFlag } from "../../src/protocols/zookeeper/jute/zookeeper_operations.ts";

export interface FakeNode {
  readonly data: Uint8Array;
  readonly czxid: bigint;
  readonly mzxid: bigint;
  readonly pzxid: bigint;
  readonly version: number;
  readonly owner: bigint;
  readonly isContainer: boolean;
  readonly creates: number;
  /** Milliseconds, as `FakeTree.wallMs` says. */
  readonly ctime: number;
  readonly mtime: number;
}

/** Nodes are replaced, never changed: a copy of the map is a snapshot. */
export type Snapshot = ReadonlyMap<string, FakeNode>;

type WatchKind = "node" | "children";

const root: FakeNode = {
  data: new Uint8Array(),
  czxid: 0n,
  mzxid: 0n,
  pzxid: 0n,
  version: 0,
  owner: 0n,
  isContainer: false,
  creates: 0,
  ctime: 0,
  mtime: 0,
};
const parentOf = (path: string): string => path.slice(0, path.lastIndexOf("/")) || "/";

export function refuse(reason: ZooKeeperErrorName, action: string, path: string, index?: number): ZooKeeperError {
  const error = givenUpOperationError({ action, path }, reason);
  return new ZooKeeperError(reason, error.message, index === undefined ? { path } : { path, index });
}

export class FakeTree {
  nodes: Map<string, FakeNode> = new Map([["/", root]]);
  zxid = 0n;
  /** The server's wall clock, in Unix milliseconds. */
  wallMs: () => number = () => 0;
  /** What the sequence of the next child is, whatever was created before; for the edge at 2^31-1. */
  sequence: number | null = null;
  /** Watch events given out. */
  events = 0;
  readonly #watches: Record<WatchKind, Map<string, Set<Watcher>>> = { node: new Map(), children: new Map() };

  readonly #recursive = new Set<{ readonly path: string; readonly watcher: Watcher }>();

  create(path: string, data: Uint8Array, flags: number, owner: bigint): { path: string; stat: Stat } {
    this.zxid++;
    return this.#create(path, data, flags, owner);
  }

  delete(path: string, version: number): void {
    this.zxid++;
    this.#delete(path, version);
  }

  setData(path: string, data: Uint8Array, version: number): Stat {
    this.zxid++;
    return this.#setData(path, data, version);
  }

  multi(requests: readonly MultiRequest[], owner: bigint): MultiResult[] {
    this.zxid++;
    const before = this.nodes;
    this.nodes = new Map(before);
    const fired: [WatchKind, WatchEvent][] = [];
    this.#collect = fired;
    try {
      const results = requests.map((request, index): MultiResult => {
        try {
          return this.#apply(request, owner);
        } catch (thrown) {
          if (!(thrown instanceof ZooKeeperError) || typeof thrown.reason === "number") throw thrown;
          throw refuse(thrown.reason, "multi", thrown.path, index);
        }
      });
      this.#collect = null;
      for (const [kind, event] of fired) this.#fire(kind, event);
      return results;
    } catch (thrown) {
      this.nodes = before;
      throw thrown;
    } finally {
      this.#collect = null;
    }
  }

  watch(kind: WatchKind, path: string, watcher: Watcher): void {
    const watchers = this.#watches[kind].get(path) ?? new Set();
    watchers.add(watcher);
    this.#watches[kind].set(path, watchers);
  }

  /** Every change at or below `path`; ends when the function is called that it returns. */
  watchAll(path: string, watcher: Watcher): () => void {
    const entry = { path, watcher };
    this.#recursive.add(entry);
    return () => void this.#recursive.delete(entry);
  }

  expire(owner: bigint): void {
    this.zxid++;
    for (const [path, node] of [...this.nodes]) if (node.owner === owner) this.#delete(path, -1);
  }

  /** As `deleteall`. */
  deleteAll(path: string): void {
    for (const child of childrenIn(this.nodes, path)) this.deleteAll(`${path}/${child}`);
    if (this.nodes.has(path)) this.delete(path, -1);
  }

  /** Takes away the containers that are empty now. */
  reap(): void {
    for (const [path, node] of [...this.nodes]) {
      if (node.isContainer && node.creates > 0 && childrenIn(this.nodes, path).length === 0) this.delete(path, -1);
    }
  }

  #collect: [WatchKind, WatchEvent][] | null = null;

  #apply(request: MultiRequest, owner: bigint): MultiResult {
    switch (request.type) {
      case "create":
        return {
          type: "create",
          path: this.#create(request.path, request.data ?? new Uint8Array(), request.flags, owner).path,
        };
      case "createContainer":
        return {
          type: "createContainer",
          ...this.#create(request.path, request.data ?? new Uint8Array(), request.flags, owner),
        };
      case "check":
        this.#node(request.path, request.version, "check");
        return { type: "check" };
      case "delete":
        this.#delete(request.path, request.version);
        return { type: "delete" };
      case "setData":
        return {
          type: "setData",
          stat: this.#setData(request.path, request.data ?? new Uint8Array(), request.version),
        };
      default:
        throw refuse("UNIMPLEMENTED", request.type, "");
    }
  }

  #create(path: string, data: Uint8Array, flags: number, owner: bigint): { path: string; stat: Stat } {
    const parent = this.nodes.get(parentOf(path));
    if (parent === undefined) throw refuse("NONODE", "create", path);
    const isSequential = flags === createFlag.persistentSequential || flags === createFlag.ephemeralSequential;
    const name = isSequential ? path + String(this.sequence ?? parent.creates).padStart(10, "0") : path;
    if (this.nodes.has(name)) throw refuse("NODEEXISTS", "create", name);
    const isEphemeral = flags === createFlag.ephemeral || flags === createFlag.ephemeralSequential;
    const { zxid } = this;
    const nowMs = this.wallMs();
    this.nodes.set(name, {
      ...root,
      ...{ ctime: nowMs, mtime: nowMs },
      data,
      czxid: zxid,
      mzxid: zxid,
      pzxid: zxid,
      owner: isEphemeral ? owner : 0n,
      isContainer: flags === createFlag.container,
    });
    this.nodes.set(parentOf(path), { ...parent, pzxid: zxid, creates: parent.creates + 1 });
    this.#fire("node", { type: "created", path: name });
    this.#fire("children", { type: "childrenChanged", path: parentOf(path) });
    return { path: name, stat: statIn(this.nodes, name) };
  }

  #delete(path: string, version: number): void {
    const node = this.#node(path, version, "delete");
    if (childrenIn(this.nodes, path).length > 0) throw refuse("NOTEMPTY", "delete", path);
    this.nodes.delete(path);
    const parent = this.nodes.get(parentOf(path));
    if (parent !== undefined) this.nodes.set(parentOf(path), { ...parent, pzxid: this.zxid });
    void node;
    this.#fire("node", { type: "deleted", path });
    this.#fire("children", { type: "deleted", path });
    this.#fire("children", { type: "childrenChanged", path: parentOf(path) });
  }

  #setData(path: string, data: Uint8Array, version: number): Stat {
    const node = this.#node(path, version, "setData");
    this.nodes.set(path, { ...node, data, version: node.version + 1, mzxid: this.zxid, mtime: this.wallMs() });
    this.#fire("node", { type: "dataChanged", path });
    return statIn(this.nodes, path);
  }

  #node(path: string, version: number, action: string): FakeNode {
    const node = this.nodes.get(path);
    if (node === undefined) throw refuse("NONODE", action, path);
    if (version !== -1 && version !== node.version) throw refuse("BADVERSION", action, path);
    return node;
  }

  #fire(kind: WatchKind, event: WatchEvent): void {
    if (this.#collect !== null) return void this.#collect.push([kind, event]);
    for (const { path, watcher } of kind === "node" ? this.#recursive : []) {
      if (event.path !== path && !event.path.startsWith(`${path}/`)) continue;
      this.events++;
      watcher(event);
    }
    const watchers = this.#watches[kind].get(event.path);
    if (watchers === undefined) return;
    this.#watches[kind].delete(event.path);
    for (const watcher of watchers) {
      this.events++;
      watcher(event);
    }
  }
}

export function childrenIn(nodes: Snapshot, path: string): string[] {
  const prefix = path === "/" ? "/" : `${path}/`;
  const children: string[] = [];
  for (const name of nodes.keys()) {
    if (name !== "/" && name.startsWith(prefix) && !name.includes("/", prefix.length)) {
      children.push(name.slice(prefix.length));
    }
  }
  return children;
}

export function statIn(nodes: Snapshot, path: string): Stat {
  const node = nodes.get(path);
  if (node === undefined) throw refuse("NONODE", "read", path);
  const numChildren = childrenIn(nodes, path).length;
  return {
    czxid: node.czxid,
    mzxid: node.mzxid,
    ctime: BigInt(node.ctime),
    mtime: BigInt(node.mtime),
    version: node.version,
    cversion: 2 * node.creates - numChildren,
    aversion: 0,
    ephemeralOwner: node.owner,
    dataLength: node.data.length,
    numChildren,
    pzxid: node.pzxid,
  };
}
