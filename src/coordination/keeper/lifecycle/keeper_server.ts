/**
 * Connects the parts of a keeper: state, storage, connections and timers. Other files decide what happens; this file
 * owns everything that must be closed.
 */
import { BatonError, errorMessage, systemCallErrorReason } from "../../../base/errors.ts";
import { Histogram } from "../../../base/support/histogram.ts";
import type { Address, Connection, Listen, TlsSource } from "../../../base/sockets/connection.ts";
import type { Clock } from "../../../base/support/clock.ts";
import { listen } from "../../../base/sockets/listen.ts";
import { KeeperClientConnection, type KeeperConnectionHost } from "../protocol/client_connection.ts";
import { type KeeperDataFiles, systemKeeperDataFiles } from "../storage/data_files.ts";
import { KeeperOwnershipMonitor } from "../storage/ownership_monitor.ts";
import { fourLetterResponse, type KeeperReport } from "../protocol/four_letter_words.ts";
import type { KeeperLimits } from "../state/keeper_limits.ts";
import { KeeperListeners } from "../protocol/listeners.ts";
import { KeeperConnections } from "../protocol/open_connections.ts";
import { checkAcl } from "../state/acl_check.ts";
import { refuseKeeperOperation } from "../state/operation_error.ts";
import { toNodeStat } from "../state/tree.ts";
import { aclPermission } from "../../../protocols/zookeeper/jute/zookeeper_operations.ts";
import type { Stat } from "../../../protocols/zookeeper/jute/zookeeper_records.ts";
import { ContainerNodeReaper } from "../state/container_reaper.ts";
import {
  buildKeeperReport,
  keeperCommitSecondsBounds,
  type KeeperStatistics,
  summarizeKeeperReport,
} from "../protocol/keeper_report.ts";
import { KeeperCommitQueue } from "../protocol/group_commit_queue.ts";
import { KeeperCommitStalls } from "../state/commit_stalls.ts";
import { KeeperSessionClock } from "../state/session_clock.ts";
import { KeeperState } from "../state/keeper_state.ts";
import { KeeperStore, startKeeperStoreThread } from "../storage/keeper_store.ts";
import { encodeKeeperChanges } from "../storage/keeper_rows.ts";
import { ConnectionScheduler } from "../protocol/connection_scheduler.ts";

/** Parts of the system that a keeper uses, apart from its clock: sockets, files, and the storage thread. */
export interface KeeperSystem {
  readonly listen: Listen;
  readonly files: KeeperDataFiles;
  readonly startStoreThread: typeof startKeeperStoreThread;
}

export const realKeeperSystem: KeeperSystem = {
  listen,
  files: systemKeeperDataFiles,
  startStoreThread: startKeeperStoreThread,
};

export interface KeeperNodeView {
  readonly data: Uint8Array | null;
  readonly stat: Stat;
  readonly children: readonly string[];
}

export interface KeeperOptions {
  /** The data directory, which is created if it is missing. Only one keeper at a time can use it. */
  readonly dataDir: string;
  /** The addresses to listen on. For TCP port 0, the system chooses a port. */
  readonly listen: readonly Address[];
  /** Paths of unix sockets that every user may connect to. For other sockets, the umask decides. */
  readonly openSocketPaths?: readonly string[];
  /** TLS for the TCP addresses. */
  readonly tls?: TlsSource;
  /**
   * The resolution of session timeouts, in milliseconds. The defaults of this option and the next three are in
   * `keeperTimingDefaults`.
   */
  readonly tickTimeMs?: number;
  readonly sessionTimeoutMinMs?: number;
  readonly sessionTimeoutMaxMs?: number;
  /** The time between checks for empty containers, in milliseconds. */
  readonly containerCheckMs?: number;
  /**
   * The time without sessions and connections after which the keeper ends, in milliseconds; by default it never ends.
   */
  readonly idleExitMs?: number;
  readonly limits?: Partial<KeeperLimits>;
  /** The digest ID (`super:base64(sha1(…))`) of a client that has all permissions. */
  readonly superDigest?: string;
  /** The initial value of each new node's counter of created children, for tests of its upper limit. */
  readonly sequenceStart?: number;
  readonly clock?: Clock;
  /** Returns milliseconds since 1970, for TTL nodes and display; Date.now by default. */
  readonly wallClock?: () => number;
  readonly system?: KeeperSystem;
  /** Called with sentences that the operator should see. */
  readonly log?: (sentence: string) => void;
}

export interface KeeperServerOptions
  extends Required<Omit<KeeperOptions, "listen" | "tls" | "limits" | "superDigest">> {
  readonly limits: KeeperLimits;
  readonly superDigest: string | null;
}

const checksPerTick = 5;
/** The pause before the next attempt to store after the disk has failed, in milliseconds. */
const diskRetryMs = 1_000;
/** The most idle sessions that are ended together to make room for a new session. */
const sessionsReplacedMax = 100;

export class KeeperServer implements KeeperConnectionHost {
  readonly limits: KeeperLimits;
  /** Shares time among connections. It measures real time, which a test's clock does not replace. */
  readonly scheduler = new ConnectionScheduler({
    now: () => performance.now(),
    afterPoll: (callback) => setImmediate(callback),
  });
  readonly superDigest: string | null;
  readonly #ended = Promise.withResolvers<void>();
  readonly ended = this.#ended.promise;
  readonly #options: KeeperServerOptions;
  readonly #store: KeeperStore;
  readonly #sessionClock: KeeperSessionClock;
  readonly #stalls: KeeperCommitStalls;
  readonly #checkMs: number;
  readonly #listeners: KeeperListeners;
  readonly #ownership: KeeperOwnershipMonitor;
  readonly connections: KeeperConnections;
  state: KeeperState<KeeperClientConnection>;
  commitQueue: KeeperCommitQueue;
  durableZxid = 0n;
  writable = true;
  /** True while the state is read again after a failed commit. The keeper then accepts no connection. */
  #reloading = false;
  #idleSinceMs: number;
  readonly #commits = { commitSeconds: new Histogram(keeperCommitSecondsBounds), commitsFailed: 0 };
  #cancelTick = () => {};
  #cancelRetry = () => {};
  #stopHousekeeping = () => {};
  #closing: Promise<void> | null = null;

  private constructor(store: KeeperStore, options: KeeperServerOptions) {
    this.#store = store;
    this.#options = options;
    this.limits = options.limits;
    const { clock, limits } = options;
    this.connections = new KeeperConnections({ clock, limits, drop: (connection) => this.#drop(connection) });
    this.superDigest = options.superDigest;
    this.#checkMs = Math.max(10, options.tickTimeMs / checksPerTick);
    this.#sessionClock = new KeeperSessionClock(options.clock, this.#checkMs);
    // Remembers stalls long enough for a session that has the longest timeout plus the time of a stall.
    this.#stalls = new KeeperCommitStalls({
      durationMsMin: options.tickTimeMs,
      keptMs: 2 * options.sessionTimeoutMaxMs,
    });
    this.#idleSinceMs = options.clock.now();
    this.#listeners = new KeeperListeners({
      listen: options.system.listen,
      dataDir: options.dataDir,
      openSocketPaths: options.openSocketPaths,
      handshakesMax: Math.ceil(Math.min(limits.connectionsPerAddressMax, limits.connectionsMax / 2)),
      accept: (address) => (connection) => this.#accept(connection, address),
      log: options.log,
    });
    this.#ownership = new KeeperOwnershipMonitor({
      clock: options.clock,
      dataDir: options.dataDir,
      files: options.system.files,
      confirm: () => store.confirmOwner(),
      onLost: (error) => this.#fail(error),
      onPresent: () => void this.#listeners.restore(),
    });
    this.ended.catch(() => {}); // prevents an unhandled rejection; callers that need the result have the promise
    this.state = this.#newState();
    this.commitQueue = this.#newCommitQueue();
  }

  static async open(options: KeeperServerOptions): Promise<KeeperServer> {
    try {
      options.system.files.makeFolder(options.dataDir);
    } catch (error) {
      throw new BatonError(
        "CANNOT_CREATE",
        `Cannot create the data directory ${options.dataDir}: ${systemCallErrorReason(error)}`,
      );
    }
    const store = await KeeperStore.open(options.dataDir, options.system.startStoreThread);
    try {
      const server = new KeeperServer(store, options);
      await server.#load();
      server.#scheduleTick();
      server.#startHousekeeping();
      return server;
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  get ownsData(): boolean {
    return this.#ownership.ownsData();
  }

  get addresses(): Address[] {
    return this.#listeners.addresses;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async listen(address: Address, tls: TlsSource | undefined): Promise<void> {
    await this.#listeners.open(address, tls);
    this.#idleSinceMs = this.#options.clock.now();
  }

  close(): Promise<void> {
    return this.#closing ??= this.#close().then(this.#ended.resolve, this.#ended.reject).then(() => {});
  }

  now(): number {
    return this.#sessionClock.now();
  }

  negotiateTimeoutMs(timeoutMs: number): number {
    return Math.min(Math.max(timeoutMs, this.#options.sessionTimeoutMinMs), this.#options.sessionTimeoutMaxMs);
  }

  closed(connection: KeeperClientConnection): void {
    this.connections.closed(connection);
    this.state.watches.removeAll(connection);
    this.#idleSinceMs = this.#options.clock.now();
  }

  setHeldBytes(connection: KeeperClientConnection, inputBytes: number, outputBytes: number): void {
    for (const gone of this.connections.setHeldBytes(connection, inputBytes, outputBytes)) {
      this.#options.log(
        `A connection from ${gone.peer} was closed: all connections together hold too much memory ` +
          "(readBufferBytesTotalMax, unsentBytesTotalMax)",
      );
    }
  }

  makeRoomForSession(): boolean {
    const isAtSessionLimit = () => this.state.sessions.size >= this.limits.sessionsMax;
    const isConnected = (id: bigint) => this.connections.connectionOf(id) !== undefined;
    if (isAtSessionLimit()) this.state.endIdleSessions(isConnected, sessionsReplacedMax);
    return !isAtSessionLimit();
  }

  reportBug(error: unknown): void {
    const what = error instanceof Error ? error.stack : String(error);
    this.#options.log(`This is a bug in baton, please report it: ${what}`);
  }

  fourLetterResponse(word: string): string {
    return fourLetterResponse(word, this.#report());
  }

  statistics(): KeeperStatistics {
    const { heldBytes, unsentBytes } = this.connections.table;
    return { ...this.#commits, ...summarizeKeeperReport(this.#report()), heldBytes, unsentBytes };
  }

  readNode(path: string): KeeperNodeView {
    const node = this.state.tree.get(path) ?? refuseKeeperOperation("NONODE");
    checkAcl(node.acl, aclPermission.read, []);
    return { data: node.data, stat: toNodeStat(node), children: [...node.children ?? []] };
  }

  #report(): KeeperReport {
    return buildKeeperReport(this.state, {
      options: this.#options,
      connections: [...this.connections.table],
      receivedBefore: this.connections.received,
      zxid: this.durableZxid,
      writable: this.writable,
      addresses: this.addresses,
    });
  }

  #accept(connection: Connection, address: Address): KeeperClientConnection {
    const ip = address.kind === "unix" ? "127.0.0.1" : connection.peer.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1");
    const client = new KeeperClientConnection(connection, this, ip);
    this.connections.accepted(client, address.kind === "tcp" ? ip : null);
    if (this.#closing !== null || this.#reloading) client.destroy();
    return client;
  }

  /** Closes a connection without sending its pending responses. */
  #drop(connection: KeeperClientConnection): void {
    this.state.watches.removeAll(connection);
    connection.destroy();
  }

  #newState(): KeeperState<KeeperClientConnection> {
    const { tickTimeMs, limits, wallClock, sequenceStart } = this.#options;
    const notify = (connection: KeeperClientConnection, type: number, path: string) => connection.notify(type, path);
    const identitiesOf = (connection: KeeperClientConnection) => connection.identities;
    return new KeeperState({ tickTimeMs, limits, wallClock, sequenceStart, notify, identitiesOf });
  }

  #newCommitQueue(): KeeperCommitQueue {
    return new KeeperCommitQueue({
      hasChanges: () => this.state.hasChanges,
      hasUrgentChanges: () => this.state.hasUrgentChanges,
      commit: () => this.#commit(),
      failed: (error) => void this.#commitFailed(error),
    });
  }

  async #load(): Promise<void> {
    this.state = this.#newState();
    this.commitQueue = this.#newCommitQueue();
    await this.#store.load((piece) => this.state.restore(piece, this.now()));
    const isNew = this.state.tree.size === 0;
    this.state.initialize();
    const changes = this.state.takeChanges();
    // Stores the tree only if it is new, because a full disk must not prevent a start.
    if (isNew) await this.#store.commit(encodeKeeperChanges(changes));
    this.state.tree.limitStoredBytes(this.state.tree.storedBytes, await this.#store.room());
    this.durableZxid = this.state.zxid;
  }

  async #commit(): Promise<void> {
    const changes = this.state.takeChanges();
    const { tree } = this.state;
    const { storedBytes } = tree;
    const startMs = this.#options.clock.now();
    this.#stalls.begin(this.now());
    const room = await this.#store.commit(encodeKeeperChanges(changes)).finally(() => this.#stalls.end(this.now()));
    tree.limitStoredBytes(storedBytes, room);
    this.#commits.commitSeconds.observe((this.#options.clock.now() - startMs) / 1000);
    this.durableZxid = changes.zxid;
  }

  /**
   * Discards the state in memory, which is ahead of the disk, and reads the state from the disk again. Closes all
   * connections, because their clients may have seen the discarded state. Reads and pings then continue; writes
   * continue when the disk can store again.
   */
  async #commitFailed(error: unknown): Promise<void> {
    if (this.#closing !== null) return;
    if (isOwnedByAnother(error)) return this.#fail(error);
    this.#options.log(
      `${errorMessage(error)}. Closed all connections; writes are refused until the disk can store again`,
    );
    this.#commits.commitsFailed++;
    this.writable = false;
    this.#reloading = true;
    this.connections.closeAll();
    try {
      await this.#load();
      this.#reloading = false;
      if (this.#closing === null) this.#retryLater();
    } catch (fatal) {
      this.#fail(fatal);
    }
  }

  #fail(error: unknown): void {
    if (this.#closing !== null) return;
    this.#options.log(`${errorMessage(error)}. The keeper exits`);
    this.commitQueue.stop();
    this.connections.closeAll();
    this.#closing = this.#close().catch(() => {}).then(() => this.#ended.reject(error));
  }

  #retryLater(): void {
    this.#cancelRetry = this.#options.clock.startTimer(diskRetryMs, () => {
      this.#store.commit(encodeKeeperChanges(this.state.takeChanges())).then(() => {
        this.writable = true;
        this.#options.log("The keeper can store data again");
      }, (error) => {
        if (isOwnedByAnother(error)) this.#fail(error);
        else if (this.#closing === null) this.#retryLater();
      });
    });
  }

  #tick(): void {
    if (!this.ownsData) return;
    const { clock, idleExitMs } = this.#options;
    this.#sessionClock.tick(!this.writable);
    if (this.writable) this.#expire();
    this.commitQueue.commitRest();
    const nowMs = clock.now();
    this.connections.closeSilent();
    if (this.connections.table.size > 0 || this.state.sessions.size > 0) this.#idleSinceMs = nowMs;
    if (nowMs - this.#idleSinceMs > idleExitMs) void this.close();
    else this.#scheduleTick();
  }

  #scheduleTick(): void {
    this.#cancelTick = this.#options.clock.startTimer(this.#checkMs, () => this.#tick());
  }

  #expire(): void {
    const nowMs = this.now();
    for (const session of this.state.sessions.expiredSessions(nowMs)) {
      const connection = this.connections.connectionOf(session.id);
      // The keeper stops reading this client's requests until the disk has stored the earlier ones.
      if (connection?.waitsForDisk === true) {
        this.state.sessions.touch(session, nowMs);
        continue;
      }
      const { deadlineMs, timeoutMs } = session;
      if (nowMs < deadlineMs + this.#stalls.longestSince(deadlineMs - timeoutMs, nowMs)) continue;
      this.state.closeSession(session);
      if (connection !== undefined) this.#drop(connection);
    }
    this.commitQueue.flush();
  }

  #startHousekeeping(): void {
    const { clock, wallClock, containerCheckMs } = this.#options;
    const reaping = new ContainerNodeReaper({
      clock,
      wallClock,
      checkMs: containerCheckMs,
      state: () => this.writable ? this.state : null,
      flushReplies: () => this.commitQueue.flush(),
    });
    this.#ownership.watch();
    this.#stopHousekeeping = () => {
      reaping.stop();
      this.#ownership.stop();
    };
  }

  async #close(): Promise<void> {
    this.#cancelTick();
    this.#cancelRetry();
    this.#stopHousekeeping();
    this.connections.stop();
    // Closes the sockets before giving up the data directory: afterwards, their paths may belong to another keeper.
    await this.#listeners.close();
    this.commitQueue.stop();
    this.connections.closeAll();
    await this.#store.close();
  }
}

function isOwnedByAnother(error: unknown): boolean {
  return error instanceof BatonError && error.code === "LOCK_BUSY";
}
