/**
 * Acquires a lock: runs one contender under one deadline and one signal, and reports who holds the lock when it fails.
 * docs/protocol/lock.md describes the protocol of baton's own locks; test/coordination/model checks it.
 */
import type { Acl, ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError, errorMessage } from "../../base/errors.ts";
import { abortable, onAbort, TaskScope, throwIfAborted } from "../../base/support/abort.ts";
import { type Clock, systemClock } from "../../base/support/clock.ts";
import { type Deadline, startCallDeadline, WaitTimeout } from "../../base/support/deadline.ts";
import { formatDuration } from "../../base/support/duration.ts";
import type { GrantClaim } from "./grant_claim.ts";
import {
  type CommonLockContenderOptions,
  type GrantedLockContender,
  type LockContenderOutcome,
  LockQueueContender,
} from "./lock_contender.ts";
import { isLockLimit, lockLimitMax, type LockStateCodec } from "./lock_state.ts";
import { type HolderInfo, type HolderRevocation, unknownHolder } from "../nodes/holder_info.ts";
import type { LockMode } from "../../base/process/lease.ts";
import { type LeaveReason, waitForFreshSessionLease, withinLeaveTime } from "../nodes/session_waits.ts";
import { describeLock, type LockStatus, lockStatus } from "./lock_status.ts";
import { type LockPath, lockPath } from "../nodes/node_paths.ts";
import { ZooKeeperLease } from "../nodes/zookeeper_lease.ts";

/** Options for acquiring a lock of any protocol. */
export interface CommonAcquireLockOptions {
  /** "exclusive" when left out. */
  readonly mode?: LockMode;
  /**
   * "none": acquire the lock only if the first response shows that it is free; that response must arrive within the
   * session timeout. A number: milliseconds. "forever" when left out.
   */
  readonly wait?: "none" | "forever" | number;
  /** Start of the wait on the clock, if it began before this call: `wait` counts from there. */
  readonly sinceMs?: number;
  /** A signal of `startCallDeadline` limits the larger call that this one is part of, and replaces `wait`. */
  readonly signal?: AbortSignal;
  /** Description of this process for others that read the lock. */
  readonly info?: HolderInfo;
  /** Called when the wait begins, when the place in the queue changes, and every `progressMs`. */
  readonly onWaiting?: (status: WaitingStatus) => void;
  /** Called each time another contender is in the way; must send no request. */
  readonly onQueued?: () => void;
  /** Milliseconds between two reports. 0, the default: no periodic report. */
  readonly progressMs?: number;
  /** Name of the lock's kind in messages: "lock" when left out. */
  readonly kind?: string;
  /** ACL of every node that is created; the client's own when left out. */
  readonly acl?: Acl[];
  /** The client's own clock: leases are compared with it. */
  readonly clock?: Clock;
}

export interface AcquireOptions extends CommonAcquireLockOptions {
  /** Number of permits, for mode "permit". */
  readonly limit?: number;
  /** 0 (first) to 999; 100 when left out. */
  readonly priority?: number;
  /** Parent node of all objects: "/baton" when left out. */
  readonly root?: string;
  /** The lock's own path, instead of one made from root and name. */
  readonly path?: LockPath;
  /** Format of the data that is written into the lock's node; only the limit when left out. */
  readonly state?: LockStateCodec;
  /** True when the caller has seen that the lock does not exist: saves a round trip; a wrong guess costs one. */
  readonly isNew?: boolean;
  /** Each grant is requested together with this claim. Rejects with what it throws. */
  readonly claim?: GrantClaim;
}

export interface WaitingStatus {
  /** 1 is the next. */
  readonly place: number;
  readonly waitedMs: number;
  readonly status: LockStatus;
}

/** Minimum session timeout in milliseconds. A shorter session leaves no time to reconnect and to stop a command. */
export const sessionTimeoutMsMin = 2000;
/** Maximum number of holders and waiters whose details are read for a message. */
const detailsMax = 100;

/** One contender for a lock. */
export interface LockContender {
  /** The id in the name of its node; empty while there is no node. */
  readonly guid: string;
  /** Whether other contenders were in the way in the last response. */
  readonly isBusy: boolean;
  /** Whether leaving must give a claim back. */
  readonly hasClaimed?: boolean;
  run(): Promise<LockContenderOutcome>;
  leave(): Promise<void>;
}

/** The protocol that the contenders of a lock follow: baton's own, or another library's. */
export interface LockProtocol {
  readonly path: LockPath;
  newContender(settings: CommonLockContenderOptions): LockContender;
  readStatus(): Promise<LockStatus>;
  /** Reads a request to release the lock from the holder's node; baton's own format by default. */
  readonly parseRevocation?: (data: Uint8Array) => HolderRevocation | null;
}

/**
 * Waits for the lock and returns the lease. Rejects LOCK_BUSY (`wait: "none"`), LOCK_TIMEOUT (a server has reported
 * that the lock is busy), LIMIT_MISMATCH (others hold it with another limit), CONFIG (T below 2 s, or a node that is
 * not baton's), UNREACHABLE (no server responded in time, or the session ended during the wait), the signal's reason,
 * and what a server refuses. A call that rejects has left the queue; if no server responds within 1 s, it leaves as
 * soon as one does.
 */
export async function acquireLock(
  zk: ZooKeeper,
  name: string,
  options: AcquireOptions = {},
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

/** Acquires a lock by any protocol. Rejects as `acquireLock` does. */
export async function acquireLockByProtocol(
  zk: ZooKeeper,
  name: string,
  protocol: LockProtocol,
  options: CommonAcquireLockOptions,
): Promise<ZooKeeperLease> {
  return await new LockAcquisition(zk, name, protocol, options).run();
}

class LockAcquisition {
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

  async run(): Promise<ZooKeeperLease> {
    throwIfAborted(this.#options.signal);
    const { session } = this.#zk;
    if (session.timeoutMs < sessionTimeoutMsMin) {
      throw new BatonError(
        "CONFIG",
        `Session timeout ${session.timeoutMs} ms is too short: a lock needs at least ${sessionTimeoutMsMin} ms. ` +
          "Raise the session timeout, or the server's maxSessionTimeout",
      );
    }
    const { progressMs = 0, onWaiting } = this.#options;
    const stop = new AbortController();
    using limit = this.#deadline();
    using _ends = new TaskScope(
      onAbort(this.#options.signal, (reason) => stop.abort(reason)),
      onAbort(session.ended, (reason) => stop.abort(reason)),
      onAbort(limit.signal, (reason) => stop.abort(reason)),
      progressMs > 0 && onWaiting !== undefined ? this.#startReports(progressMs) : () => {},
    );
    try {
      const outcome = await abortable(this.#contender.run(), stop.signal);
      // A grant and a request to stop may arrive in the same turn of the event loop: the request to stop wins.
      throwIfAborted(stop.signal);
      if (outcome.do === "granted") {
        await waitForFreshSessionLease(session, {
          clock: this.#clock,
          signal: stop.signal,
          isPatient: !this.#isImpatient,
        });
        return this.#toLease(outcome);
      }
      throw await this.#busyError("LOCK_BUSY", { state: "is busy", why: "responded" });
    } catch (thrown) {
      const isLate = thrown instanceof WaitTimeout && thrown === stop.signal.reason;
      const failure = isLate ? await this.#timeoutError(thrown) : thrown;
      await this.#leave(isLate ? "late" : stop.signal.aborted ? "stopped" : "responded");
      throw session.ended.aborted && !this.#options.signal?.aborted ? this.#sessionEndedError(failure) : failure;
    } finally {
      this.#isOver = true;
    }
  }

  get #kind(): string {
    return this.#options.kind ?? "lock";
  }

  /** Returns the deadline. A call that waits only for a response gives up after the session timeout. */
  #deadline(): Deadline {
    const { wait = "forever" } = this.#options;
    const waitMs = wait === "forever" ? undefined : this.#isImpatient ? this.#zk.session.timeoutMs : wait as number;
    return startCallDeadline(this.#clock, waitMs, { sinceMs: this.#startedMs });
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

  /** Reads the holders and leaves the queue at the same time: the reads go first, in the same write. */
  async #busyError(
    code: "LOCK_BUSY" | "LOCK_TIMEOUT",
    { state, why }: { readonly state: string; readonly why: LeaveReason },
  ): Promise<BatonError> {
    const reading = this.#protocol.readStatus().catch(() => null);
    const [status, rest] = await Promise.all([this.#withinLeaveTime(why, reading), this.#leave(why)]);
    const who = status === null
      ? `no server responded in time with the holder's name${rest}`
      : describeLock(status, { guid: this.#contender.guid, nowMs: Date.now() });
    const kind = this.#kind.charAt(0).toUpperCase() + this.#kind.slice(1);
    return new BatonError(code, `${kind} "${this.#name}" ${state}: ${who}`);
  }

  /** Returns LOCK_TIMEOUT only if a server has reported a busy lock: a grant without a response may have been made. */
  async #timeoutError({ waitMs }: WaitTimeout): Promise<BatonError> {
    if (this.#contender.isBusy) {
      return await this.#busyError("LOCK_TIMEOUT", {
        state: `is still busy after ${formatDuration(waitMs)}`,
        why: "late",
      });
    }
    const rest = await this.#leave("late");
    const what = `Cannot acquire ${this.#kind} "${this.#name}"`;
    return new BatonError("UNREACHABLE", `${what}: no server responded within ${formatDuration(waitMs)}${rest}`);
  }

  #sessionEndedError(cause: unknown): BatonError {
    const reason: unknown = this.#zk.session.ended.reason;
    const code = reason instanceof BatonError && reason.code === "REFUSED" ? "REFUSED" : "UNREACHABLE";
    const why = `the session ended before it was granted: ${errorMessage(reason)}`;
    return new BatonError(code, `Cannot acquire ${this.#kind} "${this.#name}": ${why}`, { cause });
  }

  /** Leaves once. Returns a clause for the message about what stays on the servers; empty if it has left in time. */
  #leave(why: LeaveReason): Promise<string> {
    return this.#leaving ??= this.#leaveOnce(why);
  }

  async #leaveOnce(why: LeaveReason): Promise<string> {
    const { hasClaimed = false } = this.#contender;
    const left = await this.#withinLeaveTime(hasClaimed ? "claimed" : why, this.#contender.leave().then(() => ""));
    const { session } = this.#zk;
    if (left !== null || session.ended.aborted) return left ?? "";
    return `; its session, with any node it has created, ends within ${formatDuration(session.timeoutMs)}`;
  }

  #withinLeaveTime<T>(why: LeaveReason, work: Promise<T>): Promise<T | null> {
    return withinLeaveTime({ session: this.#zk.session, clock: this.#clock, why }, work);
  }

  #startReports(progressMs: number): () => void {
    let cancel = () => {};
    const next = () => {
      cancel = this.#clock.startTimer(progressMs, () => void this.#reportWaiting().then(() => this.#isOver || next()));
    };
    next();
    return () => cancel();
  }

  /** Reports the place in the queue. Ignores failures: the wait itself meets them too. */
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
