/**
 * A lock as an object that many tasks of one process share: acquire, release, destroy. Each `acquire` is a contender,
 * so that tasks exclude each other as processes do.
 */
import type { ZooKeeper } from "../protocols/zookeeper/zookeeper.ts";
import { isSessionEndError } from "../protocols/zookeeper/zookeeper_error.ts";
import { BatonError, errorMessage } from "../base/errors.ts";
import { acquireInteropLock, type AcquireInteropOptions } from "../coordination/interop/interop_contender.ts";
import { interopLockPath } from "../coordination/interop/interop_node_names.ts";
import type { Lease } from "../base/process/lease.ts";
import { LeaseSet } from "../base/process/lease_set.ts";
import { acquireLock, type AcquireOptions } from "../coordination/lock/acquire_lock.ts";
import { encodeLockName } from "../coordination/nodes/node_paths.ts";
import { namedPriorities, type PriorityName } from "../base/support/priority.ts";
import { WaitTimeout } from "../base/support/deadline.ts";
import {
  callLimit,
  ownInfo,
  releasedWhenLost,
  sessionExpiredError,
  type SessionPlace,
  SessionSource,
} from "./session_source.ts";

export interface LockOptions extends Pick<AcquireOptions, "mode" | "limit" | "root" | "acl" | "clock" | "info"> {
  /**
   * The name is the path of a lock of Curator or kazoo programs; limit, priority and root have no meaning then.
   */
  readonly recipe?: AcquireInteropOptions["recipe"] | undefined;
  /** "foreground" (100, the default), "background" (200), or a number from 0 (first) to 999. */
  readonly priority?: PriorityName | number;
  /** Purpose, in a few words: others read it with `baton who`. */
  readonly reason?: string;
  /** Default wait of `acquire`: milliseconds, "none", or "forever" when left out. */
  readonly wait?: "none" | "forever" | number;
}

export type LockAcquireOptions = Pick<AcquireOptions, "wait" | "signal" | "onWaiting" | "progressMs">;

export class Lock implements AsyncDisposable {
  readonly name: string;
  readonly #options: LockOptions;
  readonly #sessions: SessionSource;
  /** Leases that were not released, lost ones included; oldest first. */
  readonly #leases = new Map<Lease, ZooKeeper>();

  /** Sends nothing before the first `acquire`. Throws USAGE for an invalid name. */
  constructor(place: SessionPlace, name: string, options: LockOptions = {}) {
    // Both throw for an invalid name.
    if (options.recipe === undefined) encodeLockName(name);
    else interopLockPath(name);
    this.name = name;
    this.#options = options;
    this.#sessions = new SessionSource(place);
  }

  /** True if this object has a valid lease now, by the clock. */
  get isHeld(): boolean {
    return [...this.#leases.keys()].some((lease) => lease.isHeld());
  }

  /**
   * Waits for the lock; `wait` includes opening the session. Rejects LOCK_TIMEOUT, LOCK_BUSY (`wait: "none"`),
   * CONNECTION_LOST (no server responded in time), SESSION_EXPIRED (the servers have ended the session; acquire again),
   * the other errors of `acquireLock`, and an AbortError after the object is destroyed.
   */
  async acquire(options: LockAcquireOptions = {}): Promise<Lease> {
    return await this.#sessions.run(async () => {
      const { zk, lease } = await this.#acquire(options);
      const shared = new SharedLease(releasedWhenLost(lease), () => this.#leases.delete(shared));
      this.#leases.set(shared, zk);
      return shared;
    });
  }

  /** Acquires, works, releases, also when the work fails. The work must stop when `lease.lost` aborts. */
  async use<T>(work: (lease: Lease) => Promise<T> | T, options: LockAcquireOptions = {}): Promise<T> {
    await using lease = await this.acquire(options);
    return await work(lease);
  }

  /**
   * Releases the oldest lease of this object. Rejects NOT_HELD when there is none, or the lock was taken away;
   * SESSION_EXPIRED when it ended with its session; CONNECTION_LOST when no server responds: the lock is free as soon
   * as one does, or when the session ends.
   */
  async release(): Promise<void> {
    const [oldest] = this.#leases;
    if (oldest === undefined) {
      throw new BatonError("NOT_HELD", `Cannot release lock "${this.name}": this object does not hold it`);
    }
    const [lease, { session }] = oldest;
    if (lease.lost.aborted && !lease.isHeld()) {
      this.#leases.delete(lease);
      const code = isSessionEndError(session.ended.reason)
        ? "SESSION_EXPIRED"
        : session.state === "connected"
        ? "NOT_HELD"
        : "CONNECTION_LOST";
      const cause: unknown = lease.lost.reason;
      throw new BatonError(code, `Cannot release lock "${this.name}": ${errorMessage(cause)}`, { cause });
    }
    await lease.release().catch((thrown: unknown) => {
      if (!(thrown instanceof BatonError && thrown.code === "OUTCOME_UNKNOWN")) throw thrown;
      throw new BatonError("CONNECTION_LOST", thrown.message, { cause: thrown });
    });
  }

  /** Releases all leases, ends all waits, and closes the connection if this object opened it. */
  destroy(): Promise<void> {
    return this.#sessions.close(`Lock "${this.name}" was destroyed`, () => this.#leases.keys());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.destroy();
  }

  async #acquire({ signal, wait = this.#options.wait, ...reporting }: LockAcquireOptions): Promise<Acquired> {
    const { priority = "foreground", reason = "", info = ownInfo(reason), wait: _wait, recipe, ...rest } =
      this.#options;
    const stop = this.#sessions.stopSignal(signal);
    using limit = callLimit(wait, { clock: rest.clock, signal: stop });
    let zk: ZooKeeper | null = null;
    try {
      zk = await this.#sessions.get(limit.signal);
      const common = { ...rest, ...reporting, ...limit.waiting, info };
      const lease = recipe !== undefined
        ? await acquireInteropLock(zk, this.name, { ...common, recipe })
        : await acquireLock(zk, this.name, {
          ...common,
          priority: typeof priority === "number" ? priority : namedPriorities[priority],
        });
      return { zk, lease };
    } catch (thrown) {
      throw stop.aborted ? thrown : this.#acquireError(thrown, zk);
    }
  }

  /** Returns the failure with the code of its cause. */
  #acquireError(thrown: unknown, zk: ZooKeeper | null): unknown {
    const what = `acquire lock "${this.name}"`;
    const expired = zk === null ? null : sessionExpiredError(what, zk, thrown);
    if (expired !== null) return expired;
    if (!(thrown instanceof BatonError)) return thrown;
    if (thrown instanceof WaitTimeout) {
      return new BatonError("CONNECTION_LOST", `Cannot ${what}: ${errorMessage(thrown)}`, { cause: thrown });
    }
    const isUnanswered = zk === null ? thrown.code === "UNREACHABLE" : isUnansweredBy(zk, thrown);
    return isUnanswered ? new BatonError("CONNECTION_LOST", thrown.message, { cause: thrown }) : thrown;
  }
}

export type SemaphoreOptions = Omit<LockOptions, "mode" | "limit" | "recipe">;

/**
 * A lock that `permits` processes may hold at the same time. Each lease has a `slot` from 0 to `permits` - 1 that no
 * other lease has at the same time.
 */
export class Semaphore extends Lock {
  readonly permits: number;

  /** All users must request the same number of permits; `acquire` rejects LIMIT_MISMATCH while others hold some. */
  constructor(place: SessionPlace, name: string, permits: number, options: SemaphoreOptions = {}) {
    super(place, name, { ...options, mode: "permit", limit: permits });
    this.permits = permits;
  }
}

function isUnansweredBy({ session }: ZooKeeper, { code }: BatonError): boolean {
  if (session.ended.aborted) return false;
  return code === "UNREACHABLE" || (code === "LOCK_TIMEOUT" && session.state !== "connected");
}

interface Acquired {
  readonly zk: ZooKeeper;
  readonly lease: Lease;
}

/** Lease that reports its release. */
class SharedLease extends LeaseSet {
  readonly #released: () => void;

  constructor(lease: Lease, released: () => void) {
    super([lease]);
    this.#released = released;
  }

  override release(): Promise<void> {
    this.#released();
    return super.release();
  }
}
