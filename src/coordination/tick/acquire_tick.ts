/** Takes a lock together with a tick of a schedule, or throws the reason why this call gets no tick. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError } from "../../base/errors.ts";
import { rejectOnAbort } from "../../base/support/abort.ts";
import { sleep } from "../../base/support/deadline.ts";
import { acquireLock, type AcquireLockOptions } from "../lock/acquire_lock.ts";
import { lockPath } from "../nodes/node_paths.ts";
import { describeLock, lockStatus } from "../lock/lock_status.ts";
import type { ZooKeeperLease } from "../nodes/zookeeper_lease.ts";
import { TickClaim, type TickCommandEnd, type TickOptions } from "./tick_claim.ts";
import { LockBusyAtTickError, TickIsNearError } from "./tick_errors.ts";
import type { TickAttempt } from "./tick_decision.ts";

export interface LockLeaseWithTick {
  readonly lease: ZooKeeperLease;
  readonly run: TickAttempt;
  /**
   * Records the end of the command and releases the lock. If `end` is null, the command was not started, and another
   * call can take the same try. Returns null if that was written; otherwise the reason, and the lock is still held.
   */
  end(end: TickCommandEnd | null): Promise<string | null>;
  /** Returns true if `end` has recorded that the tick failed and is not tried again. Only one call ever gets true. */
  hasFailedFinally(): boolean;
  /**
   * Returns the reason why the history has no record of this tick; null if the history has a record or will have one.
   */
  unrecorded(): string | null;
}

/** A time in milliseconds that is added to the wait for a tick, because the servers' clock is not known exactly. */
const marginMs = 5;
/** The most waits for the same tick. One wait is enough, unless the servers' clock is set back. */
const earlyTriesMax = 3;
/** How often a waiting call checks whether an earlier tick can be tried again, in milliseconds. */
const lookMs = 1000;

/**
 * Acquires a lock together with a tick. Rejects like acquireLock. Rejects with TICK_DONE_ELSEWHERE if another call has
 * the tick, TICK_NOT_DUE if no tick is due, or TICK_SKIPPED if an earlier tick is still running. Rejects with
 * CLOCK_DISAGREES if the clocks differ too much. Rejects with CONFIG if the schedule is stored with another time zone
 * or is settled up to a future time.
 */
export async function acquireTick(
  zk: ZooKeeper,
  name: string,
  { tick, leavesEarly = false, onEarly, ...options }: Omit<AcquireLockOptions, "claim" | "mode" | "limit"> & {
    readonly tick: TickOptions;
    /** If true, rejects with TickIsNearError instead of waiting for a tick that begins soon. */
    readonly leavesEarly?: boolean;
    /** Called when the call begins to wait for a tick, or for the next try of a tick. */
    readonly onEarly?: ((wait: TickIsNearError) => void) | undefined;
  },
): Promise<LockLeaseWithTick> {
  const { signal } = options;
  let waits = 0;
  for (let tries = 0;; tries++) {
    const claim = new TickClaim(zk, name, tick);
    try {
      await rejectOnAbort(claim.checkDue(), signal); // safe to abort, because checkDue only reads
      const lease = await acquireLock(zk, name, {
        ...options,
        ...(tries === 0 ? {} : { sinceMs: tick.clock.now() }), // the call has waited for the tick, not for the lock
        wait: tick.waits ? options.wait ?? "forever" : "none",
        claim,
      });
      const { run } = claim;
      if (run === null) throw new BatonError("INTERNAL", `Lock "${name}" was granted without a tick`);
      claim.claimGranted();
      let isRecorded = false;
      return {
        lease,
        run,
        async end(end) {
          const problem = await claim.end(lease, end);
          isRecorded = problem === null;
          return problem;
        },
        hasFailedFinally: () => isRecorded && claim.hasFailedFinally,
        unrecorded: () => claim.unrecorded,
      };
    } catch (thrown) {
      if (thrown instanceof LockBusyAtTickError) throw await busyError(zk, name, thrown, options.root);
      if (!(thrown instanceof TickIsNearError) || leavesEarly) throw thrown;
      if (waits >= earlyTriesMax) throw new BatonError("TICK_NOT_DUE", `Lock "${name}" has no tick: ${thrown.message}`);
      onEarly?.(thrown);
      if (await waitForTick(claim, thrown, tick, signal)) waits++;
    }
  }
}

/** Waits for the tick. Returns true at the time of the tick; false if an earlier tick can be tried again before. */
async function waitForTick(
  claim: TickClaim,
  { waitMs }: TickIsNearError,
  { clock }: TickOptions,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const untilMs = clock.now() + waitMs + marginMs;
  for (;;) {
    const leftMs = untilMs - clock.now();
    await sleep(clock, Math.min(leftMs, lookMs), signal);
    if (leftMs <= lookMs) return true;
    // If no server responds, the call only waits for its tick.
    if (await rejectOnAbort(claim.mayRetry(), signal).catch(() => false)) return false;
  }
}

async function busyError(
  zk: ZooKeeper,
  name: string,
  { tick }: LockBusyAtTickError,
  root?: string,
): Promise<BatonError> {
  const status = await lockStatus(zk, name, { path: lockPath(name, root), detailsMax: 100 }).catch(() => null);
  const who = status === null ? "" : `: ${describeLock(status, { guid: "", nowMs: Date.now() })}`;
  return new BatonError("LOCK_BUSY", `Lock "${name}" is busy, and the tick ${tick} is recorded as skipped${who}`);
}
