/**
 * One write to the node tree, with checks and changes in ZooKeeper's order. The write succeeds completely or changes
 * nothing. After success, the caller sends the collected events. Source: PrepRequestProcessor.pRequest2Txn,
 * DataTree.processTxn.
 */
import {
  aclPermission,
  createFlag,
  watchEventType,
  type ZooKeeperOperationRequest,
} from "../../../protocols/zookeeper/jute/zookeeper_operations.ts";
import type { Acl } from "../../../protocols/zookeeper/jute/zookeeper_records.ts";
import { checkAcl, type ClientIdentity, resolveAcl } from "./acl_check.ts";
import type { KeeperLimits } from "./keeper_limits.ts";
import { childCreationsMax, countNodeBytes, type NodeKind, type NodeTree, type ZNode } from "./tree.ts";
import { refuseKeeperOperation } from "./operation_error.ts";

export interface WatchedNodeChange {
  readonly type: number;
  readonly path: string;
  /** The ACL of the node at the time of the event. A client without the READ permission is not notified. */
  readonly acl: readonly Acl[];
}

export interface KeeperTransactionContext {
  readonly zxid: bigint;
  /** Wall-clock milliseconds, for ctime and mtime. */
  readonly wallMs: number;
  readonly session: bigint;
  readonly identities: readonly ClientIdentity[];
  readonly limits: KeeperLimits;
  /** The initial value of a new node's counter of created children. It is 0, except in tests of the upper limit. */
  readonly sequenceStart: number;
}

interface CreateModeTraits {
  readonly kind: NodeKind;
  readonly sequential: boolean;
}

const createModes = new Map<number, CreateModeTraits>([
  [createFlag.persistent, { kind: "persistent", sequential: false }],
  [createFlag.ephemeral, { kind: "ephemeral", sequential: false }],
  [createFlag.persistentSequential, { kind: "persistent", sequential: true }],
  [createFlag.ephemeralSequential, { kind: "ephemeral", sequential: true }],
  [createFlag.container, { kind: "container", sequential: false }],
  [createFlag.persistentTtl, { kind: "ttl", sequential: false }],
  [createFlag.persistentSequentialTtl, { kind: "ttl", sequential: true }],
]);

/** The maximum TTL in ZooKeeper's EphemeralType.TTL: 40 bits of milliseconds. */
const ttlMsMax = 0xffffffffffn;

export class KeeperTransaction {
  readonly triggers: WatchedNodeChange[] = [];
  readonly #tree: NodeTree;
  readonly #context: KeeperTransactionContext;
  readonly #undo: (() => void)[] = [];

  constructor(tree: NodeTree, context: KeeperTransactionContext) {
    this.#tree = tree;
    this.#context = context;
  }

  get limits(): KeeperLimits {
    return this.#context.limits;
  }

  rollback(): void {
    for (let undo = this.#undo.pop(); undo !== undefined; undo = this.#undo.pop()) undo();
    this.triggers.length = 0;
  }

  create(request: ZooKeeperOperationRequest<"create">, ttl = -1n): ZNode {
    const mode = createModes.get(request.flags) ?? refuseKeeperOperation("BADARGUMENTS");
    if (mode.kind === "ttl" ? ttl <= 0n || ttl > ttlMsMax : ttl >= 0n) refuseKeeperOperation("BADARGUMENTS");
    const parentPath = parentNodePath(request.path);
    const acl = this.#resolvedAcl(request.acl);
    const parent = this.#requireNode(parentPath);
    checkAcl(parent.acl, aclPermission.create, this.#context.identities);
    const path = mode.sequential ? request.path + String(parent.creates).padStart(10, "0") : request.path;
    checkNodePath(path);
    if (path.length > this.#context.limits.pathCharsMax) refuseKeeperOperation("BADARGUMENTS");
    if (this.#tree.get(path) !== undefined) refuseKeeperOperation("NODEEXISTS");
    if (parent.kind === "ephemeral") refuseKeeperOperation("NOCHILDRENFOREPHEMERALS");
    const { zxid, wallMs } = this.#context;
    const node: ZNode = {
      id: this.#tree.newId(),
      path,
      kind: mode.kind,
      ephemeralOwner: mode.kind === "ephemeral" ? this.#context.session : 0n,
      ttlMs: mode.kind === "ttl" ? Number(ttl) : 0,
      czxid: zxid,
      ctime: wallMs,
      data: request.data,
      acl,
      mzxid: zxid,
      pzxid: zxid,
      mtime: wallMs,
      version: 0,
      aversion: 0,
      creates: this.#context.sequenceStart,
      children: null,
    };
    this.#checkQuota(countNodeBytes(node), node);
    this.#recordUndo(parent);
    parent.creates = Math.min(parent.creates + 1, childCreationsMax);
    parent.pzxid = zxid;
    this.#tree.touch(parent);
    this.#tree.insert(node);
    this.#undo.push(() => this.#tree.remove(node));
    this.triggers.push(
      { type: watchEventType.created, path, acl },
      { type: watchEventType.childrenChanged, path: parent.path, acl: parent.acl },
    );
    return node;
  }

  delete(request: ZooKeeperOperationRequest<"delete">): void {
    const parentPath = parentNodePath(request.path);
    if (isServerNodePath(request.path)) refuseKeeperOperation("BADARGUMENTS");
    const parent = this.#requireNode(parentPath);
    checkAcl(parent.acl, aclPermission.delete, this.#context.identities);
    const node = this.#requireNode(request.path);
    checkVersion(node.version, request.version);
    if (node.children !== null) refuseKeeperOperation("NOTEMPTY");
    this.remove(node);
  }

  /** Deletes a node without checking permissions, for ephemeral nodes of an ended session and for empty containers. */
  remove(node: ZNode): void {
    const parent = this.#requireNode(parentNodePath(node.path));
    this.#recordUndo(parent);
    parent.pzxid = this.#context.zxid;
    this.#tree.touch(parent);
    this.#tree.remove(node);
    this.#undo.push(() => this.#tree.insert(node));
    this.triggers.push(
      { type: watchEventType.deleted, path: node.path, acl: node.acl },
      { type: watchEventType.childrenChanged, path: parent.path, acl: parent.acl },
    );
  }

  setData(request: ZooKeeperOperationRequest<"setData">): ZNode {
    checkNodePath(request.path);
    const node = this.#requireNode(request.path);
    checkAcl(node.acl, aclPermission.write, this.#context.identities);
    checkVersion(node.version, request.version);
    this.#checkQuota((request.data?.byteLength ?? 0) - (node.data?.byteLength ?? 0));
    this.#recordUndo(node);
    this.#tree.change(node, { data: request.data });
    node.version = nextNodeVersion(node.version);
    node.mzxid = this.#context.zxid;
    node.mtime = this.#context.wallMs;
    this.#tree.touch(node);
    this.triggers.push({ type: watchEventType.dataChanged, path: node.path, acl: node.acl });
    return node;
  }

  setAcl(request: ZooKeeperOperationRequest<"setAcl">): ZNode {
    checkNodePath(request.path);
    const acl = this.#resolvedAcl(request.acl);
    const node = this.#requireNode(request.path);
    checkAcl(node.acl, aclPermission.admin, this.#context.identities);
    checkVersion(node.aversion, request.version);
    this.#checkQuota(countNodeBytes({ ...node, acl }) - countNodeBytes(node));
    this.#recordUndo(node);
    this.#tree.change(node, { acl });
    node.aversion = nextNodeVersion(node.aversion);
    this.#tree.touch(node);
    return node;
  }

  check(request: { path: string; version: number }): void {
    checkNodePath(request.path);
    const node = this.#requireNode(request.path);
    checkAcl(node.acl, aclPermission.read, this.#context.identities);
    checkVersion(node.version, request.version);
  }

  #resolvedAcl(acl: ZooKeeperOperationRequest<"create">["acl"]): readonly Acl[] {
    const resolved = resolveAcl(acl, this.#context.identities);
    return resolved.length > this.#context.limits.aclEntriesMax ? refuseKeeperOperation("INVALIDACL") : resolved;
  }

  /** Throws QUOTAEXCEEDED if the change would exceed a limit. A change that frees memory always passes. */
  #checkQuota(bytes: number, made: ZNode | null = null): void {
    const { nodesMax, dataBytesMax, ephemeralsPerSessionMax } = this.#context.limits;
    if (made !== null && this.#tree.size >= nodesMax) refuseKeeperOperation("QUOTAEXCEEDED");
    const owner = made?.ephemeralOwner ?? 0n;
    if (owner !== 0n && this.#tree.ephemeralCountOf(owner) >= ephemeralsPerSessionMax) {
      refuseKeeperOperation("QUOTAEXCEEDED");
    }
    if (bytes <= 0 && made === null) return;
    if (this.#tree.bytes + bytes > dataBytesMax) refuseKeeperOperation("QUOTAEXCEEDED");
    if (!this.#tree.hasDiskFor(bytes, made === null ? 0 : 1)) refuseKeeperOperation("QUOTAEXCEEDED");
  }

  #requireNode(path: string): ZNode {
    return this.#tree.get(path) ?? refuseKeeperOperation("NONODE");
  }

  #recordUndo(node: ZNode): void {
    const { data, acl, mzxid, pzxid, mtime, version, aversion, creates } = node;
    this.#undo.push(() => {
      this.#tree.change(node, { data, acl });
      Object.assign(node, { mzxid, pzxid, mtime, version, aversion, creates });
    });
  }
}

/** Returns the next version. Versions wrap after 2^31-1 and skip -1, which means any version (ZOOKEEPER-4743). */
export function nextNodeVersion(version: number): number {
  const next = (version + 1) | 0;
  return next === -1 ? 0 : next;
}

function checkVersion(actual: number, expected: number): void {
  if (expected !== -1 && expected !== actual) refuseKeeperOperation("BADVERSION");
}

// deno-lint-ignore no-control-regex -- control characters are what it looks for
const forbidden = /[\u0000-\u001f\u007f-\u009f\ud800-\uf8ff\ufff0-\uffff]|\/\/|\/\.{1,2}(?:\/|$)/;
const special = new Set(["/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"]);

/** Throws BADARGUMENTS unless this is a valid path of a node. Source: PathUtils.validatePath. */
export function checkNodePath(path: string): void {
  if (path === "/") return;
  if (path[0] !== "/" || path.endsWith("/") || forbidden.test(path)) refuseKeeperOperation("BADARGUMENTS");
}

/**
 * Returns the path of the parent; "" means the root. Throws BADARGUMENTS only if the path has no parent: ZooKeeper
 * looks up the parent before it checks the name.
 */
export function parentNodePath(path: string): string {
  const slash = path.lastIndexOf("/");
  if (slash === -1 || path.includes("\0")) refuseKeeperOperation("BADARGUMENTS");
  return path.slice(0, slash);
}

/** Returns true if this is one of the server's own nodes, which cannot be deleted. Source: DataTree.isSpecialPath. */
export function isServerNodePath(path: string): boolean {
  return special.has(path);
}
