/**
 * The interface of a coordination service: typed operations, one-shot watches, and a session with a lease. The lease
 * always ends before a server can end the session. The client implements this interface; tests may replace it.
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

/** Options of every operation. An operation can be canceled; canceling does not undo what the server may have done. */
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
  readonly mode?: NodeCreateMode;
  /** The ACL of the new node; by default the client's. */
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
  /** The password of the session, which is a secret: any process that knows it can resume or end the session. */
  readonly password: Uint8Array;
  /** T, the negotiated session timeout, in milliseconds. */
  readonly timeoutMs: number;
  readonly state: ZooKeeperSessionState;
  /**
   * Returns the time before which no server can have ended this session, in monotonic milliseconds of the client's
   * clock. It is the send time of the last request that the leader has certainly heard of, plus T − max(0.5 s, 5 % T).
   * Responses from the leader move this time; while the session is guarded, every heartbeat does.
   */
  leaseEndMs(): number;
  /**
   * Makes the session send its heartbeats through the leader, so that the end of the lease moves. Returns the function
   * that stops this.
   */
  guard(): () => void;
  /** Aborts with a BatonError when the session has ended. The lease may end earlier. */
  readonly ended: AbortSignal;
  /**
   * Calls the listener when the state ("state") or the end of the lease ("renewed") has changed. Returns the function
   * that unsubscribes.
   */
  subscribe(listener: (change: "state" | "renewed") => void): () => void;
  /** Returns why each server could not be reached, as " (…)" for a message; empty while connected. */
  describeOutage(): string;
  /** The number of connections so far. If it has changed, the caller must repeat its current step. */
  readonly connections: number;
}

/**
 * Typed operations on a session. All of them reject with a ZooKeeperError; errors of the server have its names (NONODE,
 * BADVERSION …). CONNECTIONLOSS means that the request was sent and no response arrived, so it may have been executed.
 * OPERATIONTIMEOUT means that the request was never sent. SESSIONEXPIRED means that the session has ended.
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
   * Executes all operations or none. Rejects with the error of the first failed operation; `index` is the position of
   * that operation. Paths are without the chroot.
   */
  multi(requests: MultiRequest[], options?: NodeOperationOptions): Promise<MultiResult[]>;
  /**
   * Calls `watcher` for each node at or below `path` that is created, deleted or written, until the connection is lost.
   * The caller must add the watch again when `session.connections` has changed. There are no childrenChanged events.
   * Rejects with UNIMPLEMENTED on servers before ZooKeeper 3.6.
   */
  addRecursiveWatch?(path: string, watcher: Watcher, options?: NodeOperationOptions): Promise<void>;
  /** Reads several nodes in one request. The result for an unreadable node is its error. Needs ZooKeeper 3.6. */
  getDataOfAll?(paths: readonly string[], options?: NodeOperationOptions): Promise<(NodeData | ZooKeeperError)[]>;
  /**
   * Tells the client that this session uses the node at `path` as a container. On servers without containers, the
   * client deletes the node when it is empty.
   */
  usesContainer?(path: string): void;
  /** Waits until the server has all changes that the leader had committed at the time of the request. */
  sync(path: string, options?: NodeOperationOptions): Promise<void>;
  /** Disconnects without ending the session. Another process can continue the session; otherwise it expires. */
  leave?(): void;
  /** Ends the session on the server, within a time limit. The server deletes the session's ephemeral nodes. */
  close(): Promise<void>;
}
