/**
 * The lease of a held lock. The lock is lost when the clock reaches the end of the lease, the session ends, or the
 * holder's node is deleted. Once lost, a lock stays lost, even if the session lives on. If another process breaks the
 * lock, `lost` aborts so that the command stops; the lock stays held until the release.
 */
import type { MultiRequest, Stat, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError, errorMessage } from "../../base/errors.ts";
import { CleanupScope, onAbort } from "../../base/support/abort.ts";
import type { Clock } from "../../base/support/clock.ts";
import { resultInTimeOrNull } from "../../base/support/deadline.ts";
import { printable } from "../../base/support/text.ts";
import { ListenerSet } from "../../base/support/event.ts";
import { formatHolderNodeInfo, type HolderRevocation, parseHolderNodeInfo } from "./holder_info.ts";
import type { Lease, LockMode } from "../../base/process/lease.ts";
import {
  deleteNodeIfThere,
  isServerRefusal,
  isTransientFailure,
  nullIfNoNode,
  retryOnConnectionLoss,
} from "./node_requests.ts";

export interface ZooKeeperLeaseOptions
  extends Pick<Lease, "name" | "path" | "holderId" | "mode" | "slot" | "limit" | "fencingToken" | "waitedMs"> {
  readonly kind: string;
  readonly holderPath: string;
  /**
   * The time from the creation of the holder's node to the start of the hold, in milliseconds; 0 by default. If it is
   * more than a second, the start of the hold in the node is corrected.
   */
  readonly aheadMs?: number | undefined;
  /** The path of the queue node that the release also deletes; null or undefined if there is none. */
  readonly queueNode?: string | null | undefined;
  /** The client's own clock. */
  readonly clock: Clock;
  /**
   * The delay before the holder's node is watched, in milliseconds; 50 by default. A holder that releases sooner needs
   * no watch. A request to release the lock may be detected this much later.
   */
  readonly watchDelayMs?: number | undefined;
  /**
   * Returns the request to release the lock that is in the node's data; null if there is none. By default parses
   * baton's own format.
   */
  readonly parseRevocation?: ((data: Uint8Array) => HolderRevocation | null) | undefined;
}

const watchDelayMsDefault = 50;
/** The start of the hold in the node's data may be too early by at most this time, in milliseconds. */
const aheadMsMax = 1000;
/**
 * Listeners are notified when the end of the lease has moved by at least the session timeout divided by this number.
 */
const reportedPart = 50;
/** The time after which the node is read again if the response was lost, in milliseconds. */
const rereadMs = 1000;

export class ZooKeeperLease implements Lease {
  readonly name: string;
  readonly path: string;
  readonly holderId: string;
  readonly mode: LockMode;
  readonly slot: number | null;
  readonly limit: number | null;
  readonly fencingToken: bigint;
  readonly sessionId: bigint;
  readonly sessionTimeoutMs: number;
  readonly waitedMs: number;
  readonly nodes: readonly [holder: string];
  readonly #zk: ZooKeeper;
  readonly #clock: Clock;
  readonly #holderPath: string;
  readonly #queueNode: string | null;
  readonly #kind: string;
  readonly #parseRevocation: (data: Uint8Array) => HolderRevocation | null;
  readonly #lost = new AbortController();
  readonly #changes = new ListenerSet();
  readonly #subscriptions = new CleanupScope();
  #cancelEnd: () => void = () => {};
  #unguard: () => void = () => {};
  #isUsed = true;
  #cancelWatch: () => void = () => {};
  #watchedConnections = -1;
  #released: Promise<void> | null = null;
  /** True while the lease deletes its own node, so that a missing node does not count as a loss. */
  #isReleasing = false;
  #endedAtMs = Number.POSITIVE_INFINITY;
  /** The start of the hold to write into the node, in Unix milliseconds; null if the node already has it. */
  #sinceMs: number | null;
  #reportedEndMs: number;
  readonly #warnings = { guard: "", processes: "" };

  constructor(zk: ZooKeeper, options: ZooKeeperLeaseOptions) {
    this.#zk = zk;
    this.#clock = options.clock;
    this.#holderPath = options.holderPath;
    this.#queueNode = options.queueNode ?? null;
    this.#sinceMs = (options.aheadMs ?? 0) > aheadMsMax ? Date.now() : null;
    this.#kind = options.kind;
    this.#parseRevocation = options.parseRevocation ?? ((data) => parseHolderNodeInfo(data).revoke);
    this.name = options.name;
    this.path = options.path;
    this.holderId = options.holderId;
    this.mode = options.mode;
    this.slot = options.slot;
    this.limit = options.limit;
    this.fencingToken = options.fencingToken;
    this.waitedMs = options.waitedMs;
    this.nodes = [options.holderPath];
    this.sessionId = zk.session.id;
    this.sessionTimeoutMs = zk.session.timeoutMs;
    this.#reportedEndMs = zk.session.leaseEndMs();
    this.#unguard = zk.session.guard();
    this.#subscriptions.add(() => this.#unguard());
    this.#subscriptions.add(zk.session.subscribe((change) => this.#onSession(change)));
    this.#subscriptions.add(onAbort(zk.session.ended, (reason) => {
      this.#lose(`the session ended: ${errorMessage(reason)}`, reason);
    }));
    this.#watchEnd();
    if (!this.#isOver) this.#watchNodeIn(options.watchDelayMs ?? watchDelayMsDefault);
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  isHeld(): boolean {
    this.#clock.noticeSuspend();
    if (this.#isOver) return false;
    if (!this.#isUsed || this.#clock.now() < this.#zk.session.leaseEndMs()) return true;
    this.#loseByClock();
    return false;
  }

  endMs(): number {
    return Math.min(this.#zk.session.leaseEndMs(), this.#endedAtMs);
  }

  /**
   * Sets whether a command runs under the lock; at first, true. While no command runs, the session may wait for a slow
   * server without a limit; then only the end of the session or the deletion of the node loses the lock.
   */
  setUsed(isUsed: boolean): void {
    if (isUsed === this.#isUsed || this.#isOver) return;
    this.#isUsed = isUsed;
    if (!isUsed) {
      this.#cancelEnd();
      return this.#unguard();
    }
    this.#unguard = this.#zk.session.guard();
    this.#watchEnd();
  }

  inDoubt(): boolean {
    return this.#zk.session.state !== "connected";
  }

  describeOutage(): string {
    return this.#zk.session.describeOutage();
  }

  subscribe(listener: () => void): () => void {
    return this.#changes.subscribe(listener);
  }

  warn(about: "guard" | "processes", what: string): void {
    this.#warnings[about] = what;
    void this.#watchNode();
  }

  release(): Promise<void> {
    this.#released ??= this.#release();
    return this.#released;
  }

  /**
   * Releases the lock and executes `requests` in one transaction. If it rejects because no response arrived, the
   * transaction may have been executed, and the lease is unchanged.
   */
  async releaseWith(requests: readonly MultiRequest[]): Promise<void> {
    this.#isReleasing = true;
    try {
      await this.#zk.multi([{ type: "delete", path: this.#holderPath, version: -1 }, ...requests]);
    } catch (thrown) {
      this.#isReleasing = isTransientFailure(thrown); // the node may be gone
      throw thrown;
    }
    this.#released = Promise.resolve();
    // Deletes the queue node outside the transaction: the transaction must not fail if a user has deleted the queue
    // node.
    this.#deleteQueueNode();
    this.#endedAtMs = Math.min(this.#endedAtMs, this.#clock.now());
    this.#cleanUp();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release();
  }

  get #isOver(): boolean {
    return this.#endedAtMs !== Number.POSITIVE_INFINITY;
  }

  // Sends the deletions before the first await. If the caller then closes the session, all requests go in one packet.
  async #release(): Promise<void> {
    const deleting = this.#retryDeletion(() => this.#deleteNodes());
    this.#endedAtMs = Math.min(this.#endedAtMs, this.#clock.now());
    this.#cleanUp();
    // The caller gets an error after half the session timeout. The deletion continues, because the lock would otherwise
    // stay held while the session lives.
    const deleted = deleting.then(() => true);
    if (await resultInTimeOrNull(this.#clock, this.sessionTimeoutMs / 2, deleted) !== null) return;
    throw new BatonError(
      "OUTCOME_UNKNOWN",
      `The release of ${this.#kind} "${this.name}" is not confirmed: no server responded within ` +
        `${this.sessionTimeoutMs / 2} ms. It takes effect when a server responds, or when the session ends`,
    );
  }

  /** Deletes the holder's node and the queue node in the same transaction. */
  async #deleteNodes(): Promise<unknown> {
    if (this.#queueNode === null) return await deleteNodeIfThere(this.#zk, this.#holderPath);
    const paths = [this.#holderPath, this.#queueNode];
    const requests = paths.map((path) => ({ type: "delete", path, version: -1 }) as const);
    const done = await nullIfNoNode(this.#zk.multi(requests));
    return done ?? await Promise.all(paths.map((path) => deleteNodeIfThere(this.#zk, path)));
  }

  /** Deletes the queue node, which would otherwise stay in front of all others without a grant. */
  #deleteQueueNode(): void {
    const path = this.#queueNode;
    if (path !== null) void this.#retryDeletion(() => deleteNodeIfThere(this.#zk, path)).catch(() => {});
  }

  /**
   * Deletes nodes of the lease. A missing node or an ended session counts as success, because the lock is then
   * released.
   */
  async #retryDeletion(remove: () => Promise<unknown>): Promise<void> {
    try {
      await retryOnConnectionLoss(this.#zk, remove, { clock: this.#clock, limitMs: Infinity });
    } catch (thrown) {
      if (!this.#zk.session.ended.aborted && !isServerRefusal(thrown, "SESSIONEXPIRED")) throw thrown;
    }
  }

  /** The watcher of the node. It is one function, because the client keeps a set of functions. */
  readonly #onNodeEvent = (): void => void this.#watchNode();

  #onSession(change: "state" | "renewed"): void {
    if (change === "state" && this.#zk.session.state === "connected") {
      // Reads the node, because a watch that the client has restored may miss changes.
      if (this.#zk.session.connections !== this.#watchedConnections) this.#watchNodeIn(0);
    }
    const movedMs = this.#zk.session.leaseEndMs() - this.#reportedEndMs;
    if (change === "state" || movedMs >= this.sessionTimeoutMs / reportedPart) this.#notify();
  }

  #watchEnd(): void {
    this.#cancelEnd();
    if (!this.isHeld()) return;
    const leftMs = this.#zk.session.leaseEndMs() - this.#clock.now();
    this.#cancelEnd = this.#clock.startTimer(leftMs, () => this.#watchEnd());
  }

  #watchNodeIn(delayMs: number): void {
    this.#cancelWatch();
    this.#cancelWatch = this.#clock.startTimer(delayMs, () => void this.#watchNode());
  }

  async #watchNode(): Promise<void> {
    if (this.#isOver || this.#isReleasing) return;
    this.#watchedConnections = this.#zk.session.connections;
    try {
      const found = await nullIfNoNode(this.#zk.getData(this.#holderPath, { watch: this.#onNodeEvent }));
      if (found === null || found.stat.ephemeralOwner !== this.sessionId) {
        return this.#lose(`its node "${this.#holderPath}" was deleted`);
      }
      if (this.#isOver) return;
      this.#correctNode(found);
      const revoke = this.#parseRevocation(found.data);
      if (revoke === null) return;
      const by = revoke.by === "" ? "" : ` by ${revoke.by}`;
      const why = revoke.reason === "" ? "" : `, reason "${revoke.reason}"`;
      const act = this.#kind === "leadership" ? "ended" : "broken";
      this.#abort("REVOKED", `was ${act}${printable(by + why)}`);
      this.#notify();
    } catch (thrown) {
      // The clock and the session's end are watched independently.
      if (isTransientFailure(thrown)) this.#watchNodeIn(rereadMs);
      else if (!isServerRefusal(thrown, "SESSIONEXPIRED")) this.#lose(errorMessage(thrown), thrown);
    }
  }

  /**
   * Writes the start of the hold and the warning into the node, for people to read. The write fires the watch, so a
   * refused write is tried again.
   */
  #correctNode({ data, stat }: { readonly data: Uint8Array; readonly stat: Stat }): void {
    const info = parseHolderNodeInfo(data);
    if (info.sessionTimeoutMs === 0) return; // another library's format
    const sinceMs = Math.max(info.sinceMs, this.#sinceMs ?? 0);
    const warning = Object.values(this.#warnings).filter(Boolean).join("; ");
    if (sinceMs === info.sinceMs && warning === (info.warning ?? "")) return;
    const corrected = formatHolderNodeInfo({ ...info, sinceMs, warning });
    this.#zk.setData(this.#holderPath, corrected, stat.version).catch(() => {});
  }

  #loseByClock(): void {
    this.#lose(`no server responded in time${this.#zk.session.describeOutage()}, and the session may end now`);
  }

  #lose(why: string, cause?: unknown): void {
    if (this.#isOver) return;
    this.#endedAtMs = this.#clock.now();
    this.#abort("LOCK_LOST", `is lost: ${why}`, cause);
    this.#deleteQueueNode();
    this.#cleanUp();
    this.#notify();
  }

  #abort(code: "LOCK_LOST" | "REVOKED", what: string, cause?: unknown): void {
    const kind = this.#kind.charAt(0).toUpperCase() + this.#kind.slice(1);
    this.#lost.abort(new BatonError(code, `${kind} "${this.name}" ${what}`, cause === undefined ? {} : { cause }));
  }

  #cleanUp(): void {
    this.#cancelEnd();
    this.#cancelWatch();
    this.#subscriptions[Symbol.dispose]();
  }

  #notify(): void {
    this.#reportedEndMs = this.#zk.session.leaseEndMs();
    this.#changes.notify();
  }
}
