/**
 * The whole state of a keeper and the one way to change it: a request in, an answer and the events out. No socket, no
 * disk, no timer: whoever owns it releases the answers when the changes are durable.
 */
import { randomBytes } from "node:crypto";
import { type ByteReader, type ByteWriter } from "../../wire/bytes.ts";
import type { AnyCodec } from "../../wire/jute/jute_codec.ts";
import { zooKeeperErrorNumbers } from "../../wire/jute/zookeeper_error_codes.ts";
import { operations, permission } from "../../wire/jute/zookeeper_operations.ts";
import type { Acl } from "../../wire/jute/zookeeper_records.ts";
import { openAcl } from "../../wire/jute/zookeeper_operations.ts";
import { type Identity, permits } from "./acl_check.ts";
import type { KeeperLimits } from "./keeper_limits.ts";
import { type KeeperOperation, operationsByCode } from "./operation_table.ts";
import { OperationError } from "./operation_error.ts";
import { type KeeperSession, sessionPasswordBytes, SessionTable } from "./session_table.ts";
import { Transaction } from "./transaction.ts";
import { Tree, type ZNode } from "./tree.ts";
import { WatchTable } from "./watch_table.ts";

/** A piece of what is stored. Its zxid is 0 in all but the first, and in the first of a fresh directory. */
export interface StoredPiece {
  readonly zxid: bigint;
  readonly nodes: readonly ZNode[];
  readonly sessions: readonly Omit<KeeperSession, "deadlineMs">[];
}

/** The answer to one request; `write` appends its body, which only a success has. */
export interface OperationResult {
  readonly zxid: bigint;
  readonly error: number;
  readonly write: ((writer: ByteWriter) => void) | null;
  /** The connection ends after this answer. */
  readonly last: boolean;
}

/** Who asks. `Watcher` stands for the connection, and is what events are told to. */
export interface OperationRequester<Watcher> {
  readonly session: KeeperSession;
  readonly identities: readonly Identity[];
  readonly watcher: Watcher;
}

export interface KeeperStateOptions<Watcher> {
  readonly tickTimeMs: number;
  readonly limits: KeeperLimits;
  /** Wall-clock milliseconds, for ctime, mtime and TTL only. */
  readonly wallClock: () => number;
  /** Where events go, in the order in which they happen and before the answer to the request that caused them. */
  readonly notify: (watcher: Watcher, type: number, path: string) => void;
  /** What a watcher has proved to be, at this moment: decides which events it may learn of. */
  readonly identitiesOf: (watcher: Watcher) => readonly Identity[];
  readonly sequenceStart?: number;
}

const readOnlyAcl: readonly Acl[] = [{ perms: permission.read, id: { scheme: "world", id: "anyone" } }];

export class KeeperState<Watcher> {
  readonly tree = new Tree();
  readonly sessions: SessionTable;
  readonly watches = new WatchTable<Watcher>();
  readonly #options: KeeperStateOptions<Watcher>;
  #zxid = 0n;
  #zxidLogged = 0n;

  constructor(options: KeeperStateOptions<Watcher>) {
    this.#options = options;
    this.sessions = new SessionTable(options.tickTimeMs);
  }

  /** The last transaction's number. */
  get zxid(): bigint {
    return this.#zxid;
  }

  get limits(): KeeperLimits {
    return this.#options.limits;
  }

  /** Whether something happened that the log does not know yet. */
  get hasChanges(): boolean {
    return this.hasUrgentChanges || this.sessions.hasChanges;
  }

  /**
   * Whether one of these changes has to be in the log before anybody is told of it. A new session need not: what it does
   * later is logged behind it, and one that has done nothing loses nothing by having expired.
   */
  get hasUrgentChanges(): boolean {
    return this.#zxid !== this.#zxidLogged || this.sessions.hasUrgentChanges || this.tree.hasChanges;
  }

  /**
   * Before the first request: a zxid above all that this directory has given out, also one that is lost, or older because
   * it was restored from a backup; as far as the wall clock tells. In a new directory the server's own nodes.
   */
  initialize(): void {
    const above = BigInt(Math.floor(this.#options.wallClock() / 1000)) << 24n;
    if (above > this.#zxid) this.#zxid = above;
    if (this.tree.size > 0) return;
    for (const path of ["/", "/zookeeper", "/zookeeper/config", "/zookeeper/quota"]) {
      this.tree.insert(this.#serverNode(path));
    }
    // As in the real server: read-only, and with a list that nobody has set yet.
    const config = this.tree.get("/zookeeper/config");
    if (config !== undefined) Object.assign(config, { acl: readOnlyAcl, aversion: -1 });
  }

  /** Takes in a piece of what the log holds; the restored is not a change. Each session has its full timeout from now on. */
  restore(piece: StoredPiece, nowMs: number): void {
    if (piece.zxid !== 0n) this.#zxid = piece.zxid;
    for (const node of piece.nodes) this.tree.insert(node);
    for (const session of piece.sessions) this.sessions.add(session, nowMs);
    this.takeChanges();
  }

  notify(watcher: Watcher, type: number, path: string): void {
    this.#options.notify(watcher, type, path);
  }

  /** Everything since the last call, for the log. */
  takeChanges(): { zxid: bigint; nodes: Map<number, ZNode | null>; sessions: Map<bigint, KeeperSession | null> } {
    this.#zxidLogged = this.#zxid;
    return { zxid: this.#zxid, nodes: this.tree.takeChanges(), sessions: this.sessions.takeChanges() };
  }

  /**
   * A new session. Its number is random, so that none ever comes twice, also when the log has never heard of the first;
   * unlike in the real server it takes no zxid, which nobody may see before the log has it.
   */
  openSession(timeoutMs: number, nowMs: number): KeeperSession {
    const id = (1n << 56n) | BigInt(`0x${randomBytes(7).toString("hex")}`);
    return this.sessions.add({ id, password: randomBytes(sessionPasswordBytes), timeoutMs }, nowMs);
  }

  /** Ends a session: its ephemerals go with it, in one transaction. */
  closeSession(session: KeeperSession): void {
    const transaction = this.#begin(session.id, []);
    for (const node of [...this.tree.ephemeralsOf(session.id)]) transaction.remove(node);
    this.sessions.remove(session);
    this.#fire(transaction);
  }

  /** Some sessions that are not connected and own nothing: nobody else could get anything by their end. */
  endIdleSessions(isConnected: (id: bigint) => boolean, countMax: number): void {
    const isIdle = ({ id }: KeeperSession) => !isConnected(id) && this.tree.ephemeralCountOf(id) === 0;
    for (const session of [...this.sessions.all].filter(isIdle).slice(0, countMax)) this.closeSession(session);
  }

  /** Deletes a childless container or TTL node, in a transaction of its own. */
  reap(node: ZNode): void {
    const transaction = this.#begin(0n, []);
    transaction.remove(node);
    this.#fire(transaction);
  }

  /** Whether a request of this code is written to the log, failures included. */
  isWrite(code: number): boolean {
    return operationsByCode.get(code)?.kind === "write" || code === operations.closeSession.code;
  }

  /** Carries out one request. `reader` stands behind the request's header. */
  apply(code: number, reader: ByteReader, requester: OperationRequester<Watcher>): OperationResult {
    if (code === operations.closeSession.code) {
      this.closeSession(requester.session);
      return { zxid: this.#zxid, error: 0, write: null, last: true };
    }
    const operation = operationsByCode.get(code);
    if (operation === undefined) return this.#refused(zooKeeperErrorNumbers.UNIMPLEMENTED, true);
    return operation.kind === "write"
      ? this.#applyWrite(operation, reader, requester)
      : this.#respond(operation, reader, (request) => operation.run(request as never, this, requester));
  }

  #applyWrite(
    operation: KeeperOperation & { kind: "write" },
    reader: ByteReader,
    requester: OperationRequester<Watcher>,
  ): OperationResult {
    const transaction = this.#begin(requester.session.id, requester.identities);
    let result: OperationResult | null = null;
    try {
      result = this.#respond(operation, reader, (request) => operation.run(request as never, transaction));
    } finally {
      if (result?.error !== 0) transaction.rollback();
    }
    this.#fire(transaction);
    return result;
  }

  #respond(
    operation: { readonly request: AnyCodec; readonly response: AnyCodec },
    reader: ByteReader,
    run: (request: unknown) => unknown,
  ): OperationResult {
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
      if (!(thrown instanceof OperationError)) throw thrown;
      return this.#refused(thrown.number, false);
    }
  }

  #refused(error: number, last: boolean): OperationResult {
    return { zxid: this.#zxid, error, write: null, last };
  }

  #begin(session: bigint, identities: readonly Identity[]): Transaction {
    const { wallClock, limits, sequenceStart = 0 } = this.#options;
    return new Transaction(this.tree, {
      zxid: ++this.#zxid,
      wallMs: wallClock(),
      session,
      identities,
      limits,
      sequenceStart,
    });
  }

  #fire(transaction: Transaction): void {
    for (const { type, path, acl } of transaction.triggers) {
      const mayLearn = (watcher: Watcher) => permits(acl, permission.read, this.#options.identitiesOf(watcher));
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
