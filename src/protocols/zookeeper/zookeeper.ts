/**
 * The interface of a coordination service: typed operations, one-shot watches, and a session whose end is known before
 * the server can act on it. The client implements it; tests may replace it.
 */
import type { WatchEventTypeName } from "./jute/zookeeper_operations.ts";
import type { MultiRequest, MultiResult } from "./jute/multi_request.ts";
import type { Acl, Stat } from "./jute/zookeeper_records.ts";
import type { ZooKeeperError } from "./zookeeper_error.ts";

export type { Acl, MultiRequest, MultiResult, Stat };

export type NodeCreateMode = "persistent" | "ephemeral" | "persistentSequential" | "ephemeralSequential" | "container";

export interface WatchEvent {
  readonly type: WatchEventTypeName;
  readonly path: string;
}

/** Called at most once, when the watched node changes. Watches survive a reconnect and end with the session. */
export type Watcher = (event: WatchEvent) => void;

/** Every operation can be cancelled. That does not undo what the server may have done. */
export interface NodeOperationOptions {
  readonly signal?: AbortSignal;
}
export interface NodeReadOptions extends NodeOperationOptions {
  readonly watch?: Watcher;
}
export interface NodeData {
  readonly data: Uint8Array;
  readonly stat: Stat;
}
export interface NodeCreateOptions extends NodeOperationOptions {
  /** "persistent" when left out. */
  readonly mode?: NodeCreateMode;
  /** Open to all clients when left out, unless the client has a default. */
  readonly acl?: Acl[];
}

/**
 * The states of a session.
 * - connecting: not connected, searching for a server
 * - connected: requests are answered
 * - doubtful: a request has been unanswered for T/6; other servers are tried
 * - ended: expired, closed or refused; no operation works
 */
export type ZooKeeperSessionState = "connecting" | "connected" | "doubtful" | "ended";

export interface ZooKeeperSession {
  readonly id: bigint;
  /** A secret: any process that knows it can resume or end the session. */
  readonly password: Uint8Array;
  /** T, the negotiated session timeout, in milliseconds. */
  readonly timeoutMs: number;
  readonly state: ZooKeeperSessionState;
  /**
   * The time up to which no server can have ended this session, in monotonic milliseconds of the client's clock: the
   * send time of the last request that the leader is known to have heard of + T − max(0.5 s, 5 % T). It moves with
   * responses from the leader; while the session is guarded, with every heartbeat. The caller compares it with the
   * clock.
   */
  leaseEndMs(): number;
  /** Makes heartbeats go through the leader, so that the lease end moves. Returns a function that ends that. */
  guard(): () => void;
  /** Aborted once, with a BatonError, when the session has ended. The lease may end earlier. */
  readonly ended: AbortSignal;
  /**
   * Calls the listener for every change of the state and of the lease end. Returns a function that removes the
   * listener.
   */
  subscribe(listener: (change: "state" | "renewed") => void): () => void;
  /** Returns why each server could not be reached, as " (…)" for a message; empty while connected. */
  describeOutage(): string;
  /** The number of connections so far. After a change, a caller repeats its current step. */
  readonly connections: number;
}

/**
 * Typed operations on a session. All of them reject with a ZooKeeperError: the server's errors by name (NONODE,
 * BADVERSION …); CONNECTIONLOSS when the request was sent and its response did not arrive (it may have been executed);
 * OPERATIONTIMEOUT when it was never sent (not executed); SESSIONEXPIRED when the session has ended.
 */
export interface ZooKeeper extends AsyncDisposable {
  readonly session: ZooKeeperSession;
  /** The default ACL of nodes that are created without one. */
  readonly acl: Acl[];
  create(path: string, data: Uint8Array, options?: NodeCreateOptions): Promise<{ path: string; stat: Stat | null }>;
  delete(path: string, version: number, options?: NodeOperationOptions): Promise<void>;
  exists(path: string, options?: NodeReadOptions): Promise<Stat | null>;
  getData(path: string, options?: NodeReadOptions): Promise<NodeData>;
  setData(path: string, data: Uint8Array, version: number, options?: NodeOperationOptions): Promise<Stat>;
  getChildren(path: string, options?: NodeReadOptions): Promise<{ children: string[]; stat: Stat }>;
  getAcl(path: string, options?: NodeOperationOptions): Promise<{ acl: Acl[]; stat: Stat }>;
  setAcl(path: string, acl: Acl[], version: number, options?: NodeOperationOptions): Promise<Stat>;
  /**
   * Executes all operations or none. Rejects with the error of the first failed one and its `index`. Paths are without
   * the chroot.
   */
  multi(requests: MultiRequest[], options?: NodeOperationOptions): Promise<MultiResult[]>;
  /**
   * Calls `watcher` for each node at or below `path` that is created, deleted or written, until the connection is lost:
   * add the watch again when `session.connections` has changed. There are no events of the kind childrenChanged.
   * Rejects with UNIMPLEMENTED on servers before ZooKeeper 3.6.
   */
  addRecursiveWatch?(path: string, watcher: Watcher, options?: NodeOperationOptions): Promise<void>;
  /** Reads several nodes in one request, on the same servers. The result of an unreadable node is its error. */
  getDataOfAll?(paths: readonly string[], options?: NodeOperationOptions): Promise<(NodeData | ZooKeeperError)[]>;
  /**
   * Tells the client that this session uses the node at `path` as a container. On a server without containers, the
   * client deletes the node when it is empty: after a deletion in it, and at `close`.
   */
  usesContainer?(path: string): void;
  /** Waits until the server has all changes that the leader had committed at the time of the request. */
  sync(path: string, options?: NodeOperationOptions): Promise<void>;
  /** Disconnects without ending the session. Another process continues it, or it expires. */
  leave?(): void;
  /** Ends the session on the server, within a time limit. The server deletes the session's ephemeral nodes. */
  close(): Promise<void>;
}
