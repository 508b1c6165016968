/**
 * Acquires a lock: runs one contender with one deadline and one signal. If that fails, the error says who holds the
 * lock. docs/protocol/lock.md describes the protocol; test/coordination/model checks it.
 */
import type { Acl, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError, errorMessage } from "../../base/errors.ts";
import { type Clock, systemClock } from "../../base/support/clock.ts";
import type { WaitTimeout } from "../../base/support/deadline.ts";
import { formatDuration } from "../../base/support/duration.ts";
import type { LockGrantClaim } from "./grant_claim.ts";
import {
  type CommonLockContenderOptions,
  type GrantedLockContender,
  type LockContenderOutcome,
  LockQueueContender,
} from "./lock_contender.ts";
import { isLockLimit, lockLimitMax, type LockStateCodec } from "./lock_state.ts";
import { type HolderInfo, type HolderRevocation, unknownHolder } from "../nodes/holder_info.ts";
import type { LockMode } from "../../base/process/lease.ts";
import {
  type AcquisitionSteps,
  type QueueLeaveReason,
  runAcquisition,
  sessionTimeoutMsMin,
  waitForFreshSessionLease,
  withinQueueLeaveTime,
} from "../nodes/session_waits.ts";
import { describeLock, type LockStatus, lockStatus } from "./lock_status.ts";
import { type LockPath, lockPath } from "../nodes/node_paths.ts";
import { ZooKeeperLease } from "../nodes/zookeeper_lease.ts";

export interface CommonAcquireLockOptions {
  /** The mode in which to hold the lock; by default "exclusive". */
  readonly mode?: LockMode;
  /**
   * The longest wait in milliseconds; by default "forever". "none" acquires the lock only if the first response shows
   * that it is free; that response must arrive within the session timeout.
   */
  readonly wait?: "none" | "forever" | number;
  /**
   * The time at which the wait began, on the clock, if that was before this call. `wait` is measured from this time.
   */
  readonly sinceMs?: number;
  /** Ends the wait. If `startCallDeadline` made the signal, it limits the larger call, and `wait` does not apply. */
  readonly signal?: AbortSignal;
  /** Describes this process to others that read the lock. */
  readonly info?: HolderInfo;
  /** Called when the wait begins, when the place in the queue changes, and every `progressMs`. */
  readonly onWaiting?: (status: WaitingStatus) => void;
  /** Called each time another contender is ahead of this one. The callback must not send a request. */
  readonly onQueued?: () => void;
  /**
   * The time between two calls of `onWaiting`, in milliseconds. If it is 0 (the default), there are no periodic calls.
   */
  readonly progressMs?: number;
  /** The word for the lock in messages; by default "lock". */
  readonly kind?: string;
  /** The ACL of every node that is created; by default the client's. */
  readonly acl?: Acl[];
  /** The client's own clock, because the time is compared with leases. */
  readonly clock?: Clock;
}

export interface AcquireLockOptions extends CommonAcquireLockOptions {
  readonly limit?: number;
  /** The position in the queue, from 0 (served first) to 999; 100 by default. */
  readonly priority?: number;
  /** The parent node of all objects; "/baton" by default. */
  readonly root?: string;
  readonly path?: LockPath;
  /** The format of the data of the lock's node. By default, the data contains only the limit. */
  readonly state?: LockStateCodec;
  readonly isNew?: boolean;
  /**
   * A claim to make in the same transaction as the grant. If the claim throws, `acquireLock` rejects with that error.
   */
  readonly claim?: LockGrantClaim;
}

export interface WaitingStatus {
  /** Place in the queue; 1 is the next. */
  readonly place: number;
  readonly waitedMs: number;
  readonly status: LockStatus;
}

/** The most holders and waiters whose details are read for a message. */
const detailsMax = 100;

export interface LockContender {
  /** The id in the name of the contender's node; empty while there is no node. */
  readonly guid: string;
  /** True if the last response showed other contenders ahead of this one. */
  readonly isBusy: boolean;
  /** True if `leave` must return a claim. */
  readonly hasClaimed?: boolean;
  run(): Promise<LockContenderOutcome>;
  leave(): Promise<void>;
}

/** The protocol that the contenders of a lock follow: baton's own, or another library's. */
export interface LockProtocol {
  readonly path: LockPath;
  newContender(settings: CommonLockContenderOptions): LockContender;
  readStatus(): Promise<LockStatus>;
  /**
   * Returns the request to release the lock that is in the data of the holder's node; null if there is none. By default
   * parses baton's own format.
   */
  readonly parseRevocation?: (data: Uint8Array) => HolderRevocation | null;
}

/**
 * Waits for the lock and returns the lease. Rejects with the signal's reason, with the error of a server, or with one
 * of these codes:
 * - LOCK_BUSY: the lock is busy and `wait` is "none"
 * - LOCK_TIMEOUT: the time to wait has passed, and a server has responded that the lock is busy
 * - LIMIT_MISMATCH: others hold the lock with another limit
 * - CONFIG: the session timeout is below 2 s, or a node is not baton's
 * - UNREACHABLE: no server responded in time, or the session ended during the wait
 *
 * A call that rejects has left the queue. If no server responds within 1 s, it leaves the queue as soon as a server
 * responds.
 */
export async function acquireLock(
  zk: ZooKeeper,
  name: string,
  options: AcquireLockOptions = {},
): Promise<ZooKeeperLease> {
  const { limit = 1, priority = 100, isNew = false, state, claim } = options;
  if (!isLockLimit(limit)) {
    throw new BatonError("USAGE", `Limit ${limit} is not a whole number from 1 to ${lockLimitMax}`);
  }
  const path = options.path ?? lockPath(name, options.root);
  const codec = state === undefined ? {} : { state };
  return await acquireLockByProtocol(zk, name, {
    path,
    newContender: (settings) => new LockQueueContender(zk, { ...settings, limit, priority, isNew, claim, ...codec }),
    readStatus: () => lockStatus(zk, name, { path, detailsMax }),
  }, options);
}

/** Waits for a lock of any protocol. Rejects as `acquireLock` does. */
export async function acquireLockByProtocol(
  zk: ZooKeeper,
  name: string,
  protocol: LockProtocol,
  options: CommonAcquireLockOptions,
): Promise<ZooKeeperLease> {
  return await new LockAcquisition(zk, name, protocol, options).acquire();
}

class LockAcquisition implements AcquisitionSteps<LockContenderOutcome, ZooKeeperLease> {
  readonly #zk: ZooKeeper;
  readonly #name: string;
  readonly #protocol: LockProtocol;
  readonly #options: CommonAcquireLockOptions;
  readonly #clock: Clock;
  readonly #mode: LockMode;
  readonly #startedMs: number;
  readonly #contender: LockContender;
  #isReporting = false;
  #isOver = false;
  #cancelReport = () => {};
  #leaving: Promise<string> | null = null;

  constructor(zk: ZooKeeper, name: string, protocol: LockProtocol, options: CommonAcquireLockOptions) {
    const { mode = "exclusive", info = unknownHolder, acl = zk.acl } = options;
    this.#zk = zk;
    this.#name = name;
    this.#protocol = protocol;
    this.#options = options;
    this.#mode = mode;
    this.#clock = options.clock ?? systemClock();
    this.#startedMs = options.sinceMs ?? this.#clock.now();
    this.#contender = protocol.newContender({
      path: protocol.path,
      mode,
      info,
      acl,
      clock: this.#clock,
      waits: !this.#isImpatient,
      onQueued: () => {
        options.onQueued?.();
        void this.#reportWaiting();
      },
    });
  }

  async acquire(): Promise<ZooKeeperLease> {
    const { session } = this.#zk;
    const { signal } = this.#options;
    try {
      return await runAcquisition(this, {
        session,
        clock: this.#clock,
        signal,
        startedMs: this.#startedMs,
        waitMs: this.#waitMs,
      });
    } finally {
      this.#isOver = true;
      this.#cancelReport();
    }
  }

  shortTimeoutMessage(timeoutMs: number): string {
    return `Session timeout ${timeoutMs} ms is too short: a lock needs at least ${sessionTimeoutMsMin} ms. ` +
      "Raise the session timeout, or the server's maxSessionTimeout";
  }

  run(): Promise<LockContenderOutcome> {
    this.#scheduleReport();
    return this.#contender.run();
  }

  async take(outcome: LockContenderOutcome, stop: AbortSignal): Promise<ZooKeeperLease> {
    if (outcome.do !== "granted") throw await this.#busyError("LOCK_BUSY", { state: "is busy", why: "responded" });
    const isPatient = !this.#isImpatient;
    await waitForFreshSessionLease(this.#zk.session, { clock: this.#clock, signal: stop, isPatient });
    return this.#toLease(outcome);
  }

  /**
   * Throws LOCK_TIMEOUT only if a server has responded that the lock is busy. Otherwise the lock may have been granted,
   * and only the response was lost.
   */
  async timeOut({ waitMs }: WaitTimeout): Promise<never> {
    if (this.#contender.isBusy) {
      const state = `is still busy after ${formatDuration(waitMs)}`;
      throw await this.#busyError("LOCK_TIMEOUT", { state, why: "late" });
    }
    const rest = await this.leave("late");
    const what = `Cannot acquire ${this.#kind} "${this.#name}"`;
    throw new BatonError("UNREACHABLE", `${what}: no server responded within ${formatDuration(waitMs)}${rest}`);
  }

  /**
   * Leaves the queue. Returns a clause for the message about what stays on the servers; empty if the contender has left
   * in time.
   */
  leave(why: QueueLeaveReason): Promise<string> {
    return this.#leaving ??= this.#leaveOnce(why);
  }

  sessionEndedError(reason: unknown, cause: unknown): BatonError {
    const code = reason instanceof BatonError && reason.code === "REFUSED" ? "REFUSED" : "UNREACHABLE";
    const why = `the session ended before it was granted: ${errorMessage(reason)}`;
    return new BatonError(code, `Cannot acquire ${this.#kind} "${this.#name}": ${why}`, { cause });
  }

  get #kind(): string {
    return this.#options.kind ?? "lock";
  }

  /** The longest wait in milliseconds. A call that waits only for a response gives up after the session timeout. */
  get #waitMs(): number | undefined {
    const { wait = "forever" } = this.#options;
    return wait === "forever" ? undefined : this.#isImpatient ? this.#zk.session.timeoutMs : wait as number;
  }

  get #isImpatient(): boolean {
    return this.#options.wait === "none" || this.#options.wait === 0;
  }

  #toLease(granted: GrantedLockContender): ZooKeeperLease {
    return new ZooKeeperLease(this.#zk, {
      name: this.#name,
      kind: this.#kind,
      path: this.#protocol.path.lock,
      holderPath: `${this.#protocol.path.holders}/${granted.node}`,
      queueNode: granted.queueNode,
      aheadMs: granted.aheadMs,
      holderId: granted.guid,
      mode: this.#mode,
      slot: granted.slot,
      limit: granted.limit,
      fencingToken: granted.token,
      waitedMs: this.#clock.now() - this.#startedMs,
      clock: this.#clock,
      parseRevocation: this.#protocol.parseRevocation,
    });
  }

  /** Reads the holders for the message, and leaves the queue at the same time. The reads are sent first. */
  async #busyError(
    code: "LOCK_BUSY" | "LOCK_TIMEOUT",
    { state, why }: { readonly state: string; readonly why: QueueLeaveReason },
  ): Promise<BatonError> {
    const reading = this.#protocol.readStatus().catch(() => null);
    const [status, rest] = await Promise.all([this.#withinLeaveTime(why, reading), this.leave(why)]);
    const who = status === null
      ? `no server responded in time with the holder's name${rest}`
      : describeLock(status, { guid: this.#contender.guid, nowMs: Date.now() });
    const kind = this.#kind.charAt(0).toUpperCase() + this.#kind.slice(1);
    return new BatonError(code, `${kind} "${this.#name}" ${state}: ${who}`);
  }

  async #leaveOnce(why: QueueLeaveReason): Promise<string> {
    const { hasClaimed = false } = this.#contender;
    const left = await this.#withinLeaveTime(hasClaimed ? "claimed" : why, this.#contender.leave().then(() => ""));
    const { session } = this.#zk;
    if (left !== null || session.ended.aborted) return left ?? "";
    return `; its session, with any node it has created, ends within ${formatDuration(session.timeoutMs)}`;
  }

  #withinLeaveTime<T>(why: QueueLeaveReason, work: Promise<T>): Promise<T | null> {
    return withinQueueLeaveTime({ session: this.#zk.session, clock: this.#clock, why }, work);
  }

  #scheduleReport(): void {
    const { progressMs = 0, onWaiting } = this.#options;
    if (this.#isOver || progressMs <= 0 || onWaiting === undefined) return;
    const report = () => void this.#reportWaiting().then(() => this.#scheduleReport());
    this.#cancelReport = this.#clock.startTimer(progressMs, report);
  }

  /** Reports the place in the queue. Ignores failures, because the wait itself reports them. */
  async #reportWaiting(): Promise<void> {
    const { onWaiting } = this.#options;
    if (onWaiting === undefined || this.#isReporting) return;
    this.#isReporting = true;
    try {
      const status = await this.#protocol.readStatus();
      const mine = status.waiters.findIndex((waiter) => waiter.holderId === this.#contender.guid);
      if (this.#isOver || mine === -1) return;
      onWaiting({ place: mine + 1, waitedMs: this.#clock.now() - this.#startedMs, status });
    } catch {
      // the wait itself reports failures
    } finally {
      this.#isReporting = false;
    }
  }
}
