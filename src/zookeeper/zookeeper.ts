/**
 * What a recipe knows of a coordination server: typed operations, one-shot watches, and a session whose end is known
 * before the server can act on it. The client implements this; a test may put anything else in its place.
 */
import type { EventTypeName } from "../wire/jute/zookeeper_operations.ts";
import type { MultiRequest, MultiResult } from "../wire/jute/multi_request.ts";
import type { Acl, Stat } from "../wire/jute/zookeeper_records.ts";

export type { Acl, MultiRequest, MultiResult, Stat };

/** What a node is when it is made. */
export type CreateMode = "persistent" | "ephemeral" | "persistentSequential" | "ephemeralSequential" | "container";

export interface WatchEvent {
  readonly type: EventTypeName;
  readonly path: string;
}

/** Called at most once, when the watched thing changes. Watches survive a reconnect; they end with the session. */
export type Watcher = (event: WatchEvent) => void;

/** Every operation can be given up; giving up does not undo what the server may have done. */
export interface OperationOptions {
  readonly signal?: AbortSignal;
}
export interface ReadOptions extends OperationOptions {
  readonly watch?: Watcher;
}
export interface CreateOptions extends OperationOptions {
  /** "persistent" when left out. */
  readonly mode?: CreateMode;
  /** Open to everybody when left out, unless the client was given a default. */
  readonly acl?: Acl[];
}

/**
 * - connecting: no server yet, or looking for another one
 * - connected: requests are answered
 * - doubtful: a request has been waiting for T/6; other servers are being tried
 * - ended: expired, closed or refused; nothing works any more
 */
export type ZooKeeperSessionState = "connecting" | "connected" | "doubtful" | "ended";

export interface ZooKeeperSession {
  readonly id: bigint;
  /** A secret: with it any process can take up the session, or end it. */
  readonly password: Uint8Array;
  /** T, as negotiated with the server, in milliseconds. */
  readonly timeoutMs: number;
  readonly state: ZooKeeperSessionState;
  /**
   * Monotonic milliseconds (on the client's clock) up to which no server can have ended this session: the send time of
   * the last request that the leader is known to have heard of + T − max(0.5 s, 5 % T). It moves with the leader's
   * answers, while guarded with every heartbeat; the caller compares the clock itself.
   */
  leaseEndMs(): number;
  /** From now on the heartbeat asks the leader, so that the lease end moves. Returns what ends that. */
  guard(): () => void;
  /** Aborted once, with a BatonError, when the session has ended. The lease end may well come before. */
  readonly ended: AbortSignal;
  /** Tells every change of state and every move of the lease end. Returns what takes the listener off. */
  subscribe(listener: (change: "state" | "renewed") => void): () => void;
  /** Counts the connections this session has had: after a change, a recipe starts its step again. */
  readonly connections: number;
}

/**
 * Typed operations on a session. All of them reject with a ZooKeeperError: the server's own refusals by name (NONODE,
 * BADVERSION …), CONNECTIONLOSS when the request was sent and its answer did not come (it may have been done or not),
 * OPERATIONTIMEOUT when it was never sent (definitely not done), SESSIONEXPIRED when the session has ended.
 */
export interface ZooKeeper extends AsyncDisposable {
  readonly session: ZooKeeperSession;
  /** For nodes that are made without an ACL of their own, by whomever. */
  readonly acl: Acl[];
  create(path: string, data: Uint8Array, options?: CreateOptions): Promise<{ path: string; stat: Stat | null }>;
  delete(path: string, version: number, options?: OperationOptions): Promise<void>;
  exists(path: string, options?: ReadOptions): Promise<Stat | null>;
  getData(path: string, options?: ReadOptions): Promise<{ data: Uint8Array; stat: Stat }>;
  setData(path: string, data: Uint8Array, version: number, options?: OperationOptions): Promise<Stat>;
  getChildren(path: string, options?: ReadOptions): Promise<{ children: string[]; stat: Stat }>;
  getAcl(path: string, options?: OperationOptions): Promise<{ acl: Acl[]; stat: Stat }>;
  setAcl(path: string, acl: Acl[], version: number, options?: OperationOptions): Promise<Stat>;
  /** All or nothing. Rejects with the first failing operation's error and its `index`. Paths are without the chroot. */
  multi(requests: MultiRequest[], options?: OperationOptions): Promise<MultiResult[]>;
  /** Waits until the server has everything that the leader had committed when it was asked. */
  sync(path: string, options?: OperationOptions): Promise<void>;
  /** Ends the session on the server, bounded in time; the server deletes the session's ephemeral nodes. */
  close(): Promise<void>;
}
