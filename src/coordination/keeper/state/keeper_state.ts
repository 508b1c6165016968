/**
 * The complete state of a keeper, and the only way to change it: a request goes in, and a result and events come out.
 * Uses no socket, no disk and no timer. The caller sends the replies when the changes are durable.
 */
import { type ByteReader, type ByteWriter } from "../../../base/wire/bytes.ts";
import type { AnyJuteCodec } from "../../../base/wire/record_codec.ts";
import { zooKeeperErrorNumbers } from "../../../protocols/zookeeper/jute/zookeeper_error_codes.ts";
import { aclPermission, openAcl, zooKeeperOperations } from "../../../protocols/zookeeper/jute/zookeeper_operations.ts";
import type { Acl } from "../../../protocols/zookeeper/jute/zookeeper_records.ts";
import { type ClientIdentity, isPermittedByAcl } from "./acl_check.ts";
import type { KeeperLimits } from "./keeper_limits.ts";
import { type KeeperOperation, keeperOperationsByCode } from "./operation_table.ts";
import { KeeperOperationError } from "./operation_error.ts";
import { type KeeperSession, KeeperSessionTable, sessionPasswordBytes } from "./session_table.ts";
import { KeeperTransaction } from "./transaction.ts";
import { NodeTree, type ZNode } from "./tree.ts";
import { WatchTable } from "./watch_table.ts";

/**
 * A part of the stored data. Only the first part has the `zxid`; in the other parts, and in a new directory, it is 0.
 */
export interface KeeperDataPiece {
  readonly zxid: bigint;
  readonly nodes: readonly ZNode[];
  readonly sessions: readonly Omit<KeeperSession, "deadlineMs">[];
}

/** The result of one request. `write` appends the body of the response; a failed request has no body. */
export interface KeeperOperationResult {
  readonly zxid: bigint;
  readonly error: number;
  readonly write: ((writer: ByteWriter) => void) | null;
  /** True if the connection ends after this response. */
  readonly last: boolean;
}

/** The client that sends a request. `Watcher` is the type of the connection that receives events. */
export interface KeeperRequester<Watcher> {
  readonly session: KeeperSession;
  readonly identities: readonly ClientIdentity[];
  readonly watcher: Watcher;
}

export interface KeeperStateOptions<Watcher> {
  readonly tickTimeMs: number;
  readonly limits: KeeperLimits;
  /** Returns wall-clock milliseconds, only for ctime, mtime and TTL. */
  readonly wallClock: () => number;
  /** Receives events in the order in which they happen, before the result of the request that caused them. */
  readonly notify: (watcher: Watcher, type: number, path: string) => void;
  /** Returns the current identities of a watcher. They decide which events the watcher may see. */
  readonly identitiesOf: (watcher: Watcher) => readonly ClientIdentity[];
  readonly sequenceStart?: number;
}

const readOnlyAcl: readonly Acl[] = [{ perms: aclPermission.read, id: { scheme: "world", id: "anyone" } }];

export class KeeperState<Watcher> {
  readonly tree = new NodeTree();
  readonly sessions: KeeperSessionTable;
  readonly watches = new WatchTable<Watcher>();
  readonly #options: KeeperStateOptions<Watcher>;
  #zxid = 0n;
  #zxidLogged = 0n;
  /** The next transaction gets a zxid above this one. No client sees this zxid, because it is not stored. */
  #zxidBefore = 0n;

  constructor(options: KeeperStateOptions<Watcher>) {
    this.#options = options;
    this.sessions = new KeeperSessionTable(options.tickTimeMs);
  }

  get zxid(): bigint {
    return this.#zxid;
  }

  get limits(): KeeperLimits {
    return this.#options.limits;
  }

  /** True if there are changes that `takeChanges` has not returned yet. */
  get hasChanges(): boolean {
    return this.hasUrgentChanges || this.sessions.hasChanges;
  }

  /**
   * True if one of these changes must be on the disk before any client may see it. A new session is not urgent: it is
   * stored before its later changes, and if it has none, losing it does no harm.
   */
  get hasUrgentChanges(): boolean {
    return this.#zxid !== this.#zxidLogged || this.sessions.hasUrgentChanges || this.tree.hasChanges;
  }

  /**
   * Prepares the state for the first request. The next transaction gets a zxid above all zxids that this directory has
   * ever used, as far as the wall clock can tell; this includes zxids used before a backup was restored. The keeper
   * does not show this zxid earlier: the wall clock may be set back, and the next keeper must know each zxid that a
   * client has seen. In a new directory, also creates the server's own nodes.
   */
  initialize(): void {
    this.#zxidBefore = BigInt(Math.floor(this.#options.wallClock() / 1000)) << 24n;
    if (this.tree.size > 0) return;
    if (this.#zxidBefore > this.#zxid) this.#zxid = this.#zxidBefore;
    for (const path of ["/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"]) {
      this.tree.insert(this.#serverNode(path));
    }
    // As in ZooKeeper, this node is read-only and has the ACL version of an ACL that was never set.
    const config = this.tree.get("/zookeeper/config");
    if (config !== undefined) Object.assign(config, { acl: readOnlyAcl, aversion: -1 });
  }

  /**
   * Returns true if a client can have got this zxid from this data. If not, the data is older than what the client has
   * seen.
   */
  mayHaveGiven(zxid: bigint): boolean {
    return zxid <= this.#zxid || zxid <= this.#zxidBefore;
  }

  /** Adds a part of the stored data, without recording it as a change. The full timeout of each session starts now. */
  restore(piece: KeeperDataPiece, nowMs: number): void {
    if (piece.zxid !== 0n) this.#zxid = piece.zxid;
    for (const node of piece.nodes) this.tree.insert(node);
    for (const session of piece.sessions) this.sessions.add(session, nowMs);
    this.takeChanges();
  }

  notify(watcher: Watcher, type: number, path: string): void {
    this.#options.notify(watcher, type, path);
  }

  /** Returns all changes since the last call, to be stored. */
  takeChanges(): { zxid: bigint; nodes: Map<number, ZNode | null>; sessions: Map<bigint, KeeperSession | null> } {
    this.#zxidLogged = this.#zxid;
    return { zxid: this.#zxid, nodes: this.tree.takeChanges(), sessions: this.sessions.takeChanges() };
  }

  /**
   * Opens a session. The session's ID is random: no ID is then used twice, even if a session was never stored.
   * ZooKeeper makes the ID from a zxid, but no client of the keeper may see a zxid before it is stored.
   */
  openSession(timeoutMs: number, nowMs: number): KeeperSession {
    const [bits = 0n] = crypto.getRandomValues(new BigUint64Array(1));
    const password = crypto.getRandomValues(new Uint8Array(sessionPasswordBytes));
    return this.sessions.add({ id: (1n << 56n) | bits >> 8n, password, timeoutMs }, nowMs);
  }

  /** Ends a session and deletes its ephemeral nodes, in one transaction. */
  closeSession(session: KeeperSession): void {
    const transaction = this.#begin(session.id, []);
    for (const node of [...this.tree.ephemeralsOf(session.id)]) transaction.remove(node);
    this.sessions.removeSession(session);
    this.#fire(transaction);
  }

  /** Ends sessions that have neither a connection nor ephemeral nodes; no other client can notice their end. */
  endIdleSessions(isConnected: (id: bigint) => boolean, countMax: number): void {
    const isIdle = ({ id }: KeeperSession) => !isConnected(id) && this.tree.ephemeralCountOf(id) === 0;
    for (const session of [...this.sessions.all].filter(isIdle).slice(0, countMax)) this.closeSession(session);
  }

  /** Deletes a container or TTL node without children, in its own transaction. */
  reap(node: ZNode): void {
    const transaction = this.#begin(0n, []);
    transaction.remove(node);
    this.#fire(transaction);
  }

  /** Returns true if requests with this code use a transaction, even if they fail. */
  isWrite(code: number): boolean {
    return keeperOperationsByCode.get(code)?.kind === "write" || code === zooKeeperOperations.closeSession.code;
  }

  /** Executes one request. `reader` must be positioned after the request header. */
  apply(code: number, reader: ByteReader, requester: KeeperRequester<Watcher>): KeeperOperationResult {
    if (code === zooKeeperOperations.closeSession.code) {
      this.closeSession(requester.session);
      return { zxid: this.#zxid, error: 0, write: null, last: true };
    }
    const operation = keeperOperationsByCode.get(code);
    if (operation === undefined) return this.#refused(zooKeeperErrorNumbers.UNIMPLEMENTED, true);
    return operation.kind === "write"
      ? this.#applyWrite(operation, reader, requester)
      : this.#respond(operation, reader, (request) => operation.run(request as never, this, requester));
  }

  #applyWrite(
    operation: KeeperOperation & { kind: "write" },
    reader: ByteReader,
    requester: KeeperRequester<Watcher>,
  ): KeeperOperationResult {
    const transaction = this.#begin(requester.session.id, requester.identities);
    let result: KeeperOperationResult | null = null;
    try {
      result = this.#respond(operation, reader, (request) => operation.run(request as never, transaction));
    } finally {
      if (result?.error !== 0) transaction.rollback();
    }
    this.#fire(transaction);
    return result;
  }

  #respond(
    operation: { readonly request: AnyJuteCodec; readonly response: AnyJuteCodec },
    reader: ByteReader,
    run: (request: unknown) => unknown,
  ): KeeperOperationResult {
    let request: unknown;
    try {
      request = operation.request.read(reader);
    } catch {
      return this.#refused(zooKeeperErrorNumbers.MARSHALLINGERROR, false);
    }
    try {
      const response = run(request) as never;
      return { zxid: this.#zxid, error: 0, write: (writer) => operation.response.write(writer, response), last: false };
    } catch (thrown) {
      if (!(thrown instanceof KeeperOperationError)) throw thrown;
      return this.#refused(thrown.errorNumber, false);
    }
  }

  #refused(error: number, last: boolean): KeeperOperationResult {
    return { zxid: this.#zxid, error, write: null, last };
  }

  #begin(session: bigint, identities: readonly ClientIdentity[]): KeeperTransaction {
    const { wallClock, limits, sequenceStart = 0 } = this.#options;
    this.#zxid = (this.#zxidBefore > this.#zxid ? this.#zxidBefore : this.#zxid) + 1n;
    return new KeeperTransaction(this.tree, {
      zxid: this.#zxid,
      wallMs: wallClock(),
      session,
      identities,
      limits,
      sequenceStart,
    });
  }

  #fire(transaction: KeeperTransaction): void {
    for (const { type, path, acl } of transaction.triggers) {
      const mayLearn = (watcher: Watcher) =>
        isPermittedByAcl(acl, aclPermission.read, this.#options.identitiesOf(watcher));
      for (const watcher of this.watches.fire({ type, path, mayLearn })) this.#options.notify(watcher, type, path);
    }
  }

  #serverNode(path: string): ZNode {
    return {
      id: this.tree.newId(),
      path,
      kind: "persistent",
      ephemeralOwner: 0n,
      ttlMs: 0,
      czxid: 0n,
      ctime: 0,
      data: new Uint8Array(0),
      acl: openAcl,
      mzxid: 0n,
      pzxid: 0n,
      mtime: 0,
      version: 0,
      aversion: 0,
      creates: 0,
      children: null,
    };
  }
}
