/**
 * Common parts of the library objects: the session and the end, the time limit of a call, and the description of this
 * process.
 */
import { hostname } from "node:os";
import process from "node:process";
import type { HolderInfo } from "../coordination/nodes/holder_info.ts";
import { BatonError } from "../base/errors.ts";
import type { Lease } from "../base/process/lease.ts";
import { abortable, anyAbortSignal, onAbort, RunningCalls, throwIfAborted } from "../base/support/abort.ts";
import { type Clock, systemClock } from "../base/support/clock.ts";
import { checkWaitTime, type Deadline, startCallDeadline } from "../base/support/deadline.ts";
import { ownUserName } from "../base/support/user_name.ts";
import { connect, type ZooKeeperConnectOptions } from "../protocols/zookeeper/zookeeper_client.ts";
import type { ZooKeeper } from "../protocols/zookeeper/zookeeper.ts";
import { isSessionEndError } from "../protocols/zookeeper/zookeeper_error.ts";

/** A session that belongs to the caller, or the options to open one. */
export type SessionPlace = ZooKeeper | ZooKeeperConnectOptions;

/** A lease or a membership, which the object gives back when it is closed. */
interface Held {
  isHeld(): boolean;
  release(): Promise<void>;
}

/**
 * Gives a lease back when it is lost, so that others need not wait for the end of the session, which may live on. Its
 * work has to stop then. Returns the lease.
 */
export function releasedWhenLost<L extends Lease>(lease: L): L {
  onAbort(lease.lost, () => {
    if (!lease.isHeld()) lease.release().catch(() => {}); // it goes on when no server responds
  });
  return lease;
}

/** The session of an object, its calls in progress, and what it holds. */
export class SessionSource {
  readonly #place: SessionPlace;
  readonly #closed = new AbortController();
  /** Aborts after `#closed`, when everything is released. */
  readonly #isOver = new AbortController();
  readonly #calls = new RunningCalls();
  readonly #held = new Set<Held>();
  #own: Promise<ZooKeeper> | null = null;
  #closing: Promise<void> | null = null;

  constructor(place: SessionPlace) {
    this.#place = place;
  }

  /** Returns the signal that ends a call: at the end of the object, or with the call's own signal. */
  stopSignal(signal?: AbortSignal): AbortSignal {
    return anyAbortSignal(this.#closed.signal, signal);
  }

  /** Runs a call, which `close` waits for. Throws the reason of the end after it. */
  run<T>(work: () => Promise<T>): Promise<T> {
    throwIfAborted(this.#closed.signal);
    return this.#calls.run(work);
  }

  /** Adds a lease that `close` has to release. */
  hold<H extends Held>(lease: H): H {
    for (const one of this.#held) if (!one.isHeld()) this.#held.delete(one);
    this.#held.add(lease);
    return lease;
  }

  /** True if a session that has ended is replaced by another. */
  get canReopen(): boolean {
    return !("session" in this.#place);
  }

  /**
   * Returns the session. If this object opened it and it has ended, opens another one. Concurrent calls share one
   * connection. Rejects as `connect` does, or with the signal's reason.
   */
  async get(signal: AbortSignal = this.#closed.signal): Promise<ZooKeeper> {
    if ("session" in this.#place) return this.#place;
    const own = this.#own ??= connect({
      ...this.#place,
      signal: anyAbortSignal(this.#isOver.signal, this.#place.signal),
    });
    try {
      const zk = await abortable(own, signal);
      if (!zk.session.ended.aborted) return zk;
    } catch (thrown) {
      if (!signal.aborted && this.#own === own) this.#own = null;
      throw thrown;
    }
    if (this.#own === own) this.#own = null;
    return await this.get(signal);
  }

  /**
   * Ends all waits with an AbortError that says `why`, waits for the calls, releases everything, and ends a session
   * that this object opened. Rejects with the first failure of a release.
   */
  close(why: string, leases?: () => Iterable<Held>): Promise<void> {
    return this.#closing ??= this.#close(
      new DOMException(why, "AbortError"),
      leases ?? (() => [...this.#held].filter((one) => one.isHeld())),
    );
  }

  async #close(reason: DOMException, leases: () => Iterable<Held>): Promise<void> {
    this.#closed.abort(reason);
    await this.#calls.ended();
    const released = await Promise.allSettled([...leases()].map((one) => one.release()));
    this.#isOver.abort(reason);
    const own = await this.#own?.catch(() => null);
    await own?.close();
    for (const outcome of released) if (outcome.status === "rejected") throw outcome.reason;
  }
}

/**
 * Returns SESSION_EXPIRED when the servers have ended the session, else null. `what` could not be done: `acquire lock
 * "a"`.
 */
export function sessionExpiredError(what: string, { session }: ZooKeeper, cause: unknown): BatonError | null {
  if (!isSessionEndError(session.ended.reason)) return null;
  const why = "the servers have ended its session, because they received nothing from it for the session timeout";
  return new BatonError("SESSION_EXPIRED", `Cannot ${what}: ${why}`, { cause });
}

export interface CallLimit extends Deadline {
  /** Options for the wait, which the signal limits. */
  readonly waiting: { readonly wait?: "none" | "forever"; readonly signal: AbortSignal; readonly sinceMs: number };
}

/**
 * Returns one time limit for a whole call: opening the session and waiting. A call with `wait: "none"` has no limit of
 * its own: connecting and the lock have limits.
 */
export function callLimit(
  wait: "none" | "forever" | number | undefined,
  { clock = systemClock(), signal }: { readonly clock?: Clock | undefined; readonly signal: AbortSignal },
): CallLimit {
  checkWaitTime(wait);
  const sinceMs = clock.now();
  const limitMs = typeof wait === "number" && wait > 0 ? wait : undefined;
  const limit = startCallDeadline(clock, limitMs, { signal });
  const isTry = wait === "none" || (typeof wait === "number" && wait <= 0);
  return { ...limit, waiting: { ...(isTry ? { wait: "none" } : {}), signal: limit.signal, sinceMs } };
}

/** Describes this process for others that read a lock. */
export function ownInfo(reason: string): HolderInfo {
  return { host: hostname(), pid: process.pid, user: ownUserName(), argv0: process.argv0, reason };
}
