/**
 * What a server's nodes below one folder have to be, from what one client did there, in its order. Pure. A server that
 * died has done some beginning of that: all that it has acknowledged, and perhaps more.
 */
import type { Acl, Stat } from "../../src/protocols/zookeeper/jute/zookeeper_records.ts";

export type Kind = "persistent" | "ephemeral" | "container" | "ttl";

/** One change; it succeeds, as whoever chooses it knows the model. */
export type Change =
  | { readonly type: "create"; readonly path: string; readonly kind: Kind; readonly data: string }
  | { readonly type: "set"; readonly path: string; readonly data: string }
  | { readonly type: "setAcl"; readonly path: string; readonly acl: readonly Acl[] }
  | { readonly type: "delete"; readonly path: string }
  /** A create that is undone: it must not even count. */
  | { readonly type: "refused" }
  | { readonly type: "endSession" };

/** Changes that are one transaction, whose number is known when the server has told it. */
export interface Step {
  readonly session: bigint;
  readonly changes: readonly Change[];
  zxid: bigint | null;
}

export interface ModelNode {
  readonly kind: Kind;
  readonly owner: bigint;
  /** The transactions that made and changed it: null where nobody was told. */
  readonly czxid: bigint | null;
  mzxid: bigint | null;
  pzxid: bigint | null;
  data: string;
  acl: readonly Acl[];
  version: number;
  aversion: number;
  creates: number;
  children: Set<string>;
}

/** What is found on the server. */
export interface FoundNode {
  readonly data: string;
  readonly acl: readonly Acl[];
  readonly stat: Stat;
  readonly children: readonly string[];
}

export class TreeModel {
  readonly nodes = new Map<string, ModelNode>();
  readonly #openAcl: readonly Acl[];

  /** `root` is there from transaction `zxid` on. */
  constructor(root: string, zxid: bigint | null, openAcl: readonly Acl[]) {
    this.#openAcl = openAcl;
    this.nodes.set(root, this.#made("persistent", { data: "", owner: 0n, zxid }));
  }

  apply({ changes, session, zxid }: Step): void {
    for (const change of changes) {
      if (change.type === "refused") continue;
      if (change.type === "endSession") {
        for (const [path, node] of [...this.nodes]) if (node.owner === session) this.#remove(path, zxid);
      } else if (change.type === "create") this.#create(change, session, zxid);
      else if (change.type === "delete") this.#remove(change.path, zxid);
      else this.#change(change, zxid);
    }
  }

  /** The next sequence suffix below `path`. */
  suffix(path: string): string {
    return String(this.#at(path).creates).padStart(10, "0");
  }

  /** What differs from what was found, in words; nothing when all is as it has to be. */
  differences(found: ReadonlyMap<string, FoundNode>): string[] {
    const problems: string[] = [];
    for (const path of found.keys()) if (!this.nodes.has(path)) problems.push(`${path} should not be there`);
    for (const [path, node] of this.nodes) {
      const there = found.get(path);
      if (there === undefined) problems.push(`${path} is missing`);
      else problems.push(...differencesOf(path, node, there));
    }
    return problems;
  }

  #create({ path, kind, data }: Change & { type: "create" }, session: bigint, zxid: bigint | null): void {
    const parent = this.#at(parentOf(path));
    parent.creates++;
    parent.pzxid = zxid;
    parent.children.add(path.slice(path.lastIndexOf("/") + 1));
    this.nodes.set(path, this.#made(kind, { data, owner: kind === "ephemeral" ? session : 0n, zxid }));
  }

  #remove(path: string, zxid: bigint | null): void {
    const parent = this.#at(parentOf(path));
    parent.children.delete(path.slice(path.lastIndexOf("/") + 1));
    parent.pzxid = zxid;
    this.nodes.delete(path);
  }

  #change(change: Change & { type: "set" | "setAcl" }, zxid: bigint | null): void {
    const node = this.#at(change.path);
    if (change.type === "set") {
      node.data = change.data;
      node.version++;
      node.mzxid = zxid;
    } else {
      node.acl = change.acl;
      node.aversion++;
    }
  }

  #made(kind: Kind, { data, owner, zxid }: { data: string; owner: bigint; zxid: bigint | null }): ModelNode {
    const counters = { version: 0, aversion: 0, creates: 0 };
    const times = { czxid: zxid, mzxid: zxid, pzxid: zxid };
    return { kind, owner, data, acl: this.#openAcl, ...counters, ...times, children: new Set() };
  }

  #at(path: string): ModelNode {
    const node = this.nodes.get(path);
    if (node === undefined) throw new Error(`The model has no ${path}`);
    return node;
  }
}

function differencesOf(path: string, node: ModelNode, { data, acl, stat, children }: FoundNode): string[] {
  const wanted: Record<string, unknown> = {
    data: node.data,
    acl: JSON.stringify(node.acl),
    children: [...node.children].sort().join(),
    version: node.version,
    aversion: node.aversion,
    cversion: 2 * node.creates - node.children.size,
    ephemeralOwner: node.owner,
    numChildren: node.children.size,
  };
  const found: Record<string, unknown> = {
    ...stat,
    data,
    acl: JSON.stringify(acl),
    children: [...children].sort().join(),
  };
  for (const name of ["czxid", "mzxid", "pzxid"] as const) if (node[name] !== null) wanted[name] = node[name];
  return Object.keys(wanted).filter((name) => wanted[name] !== found[name]).map((name) =>
    `${path} has ${name} ${found[name]}, not ${wanted[name]}`
  );
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}
