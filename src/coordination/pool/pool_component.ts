/**
 * Acquires the lock of the component, which a call holds while it lists and chooses items. Other calls wait, because
 * this takes only a moment. They do not wait for other programs, which may hold the lock for hours.
 */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError } from "../../base/errors.ts";
import { CleanupScope, onAbort } from "../../base/support/abort.ts";
import { formatDuration } from "../../base/support/duration.ts";
import { nameOfHolder } from "../nodes/holder_info.ts";
import { withinQueueLeaveTime } from "../nodes/session_waits.ts";
import { acquireLock } from "../lock/acquire_lock.ts";
import { describeLock, type LockStatus, lockStatus } from "../lock/lock_status.ts";
import type { ZooKeeperLease } from "../nodes/zookeeper_lease.ts";
import type { PoolRunContext, PoolRunOptions } from "./pool_run_options.ts";

interface LockPoolComponentOptions extends PoolRunContext, Pick<PoolRunOptions, "wait"> {
  readonly signal: AbortSignal;
  /** Aborts if no server responded in time, and at the end of a `wait` in milliseconds. */
  readonly limit: AbortSignal;
  /** Called whenever the call finds that it has to wait for another holder. */
  readonly onQueued: () => void;
}

/** Rejects like acquireLock, or with the reason of the signal. */
export async function lockPoolComponent(
  zk: ZooKeeper,
  { component, path, wait, signal, limit, onQueued, ...options }: LockPoolComponentOptions,
): Promise<ZooKeeperLease> {
  const { session } = zk;
  const isPatient = typeof wait !== "object";
  const waitMs = isPatient ? wait : wait.whileChoosingMs;
  const end = new AbortController();
  let seen: LockStatus | null = null;
  let isChoosing = false;
  const readStatus = () => lockStatus(zk, component, { path: path.component, detailsMax: 1 });
  const readWhileQueued = async () => {
    seen = await readStatus().catch(() => null); // the wait reports the same error
    if (isPatient || seen === null) return;
    isChoosing = isChoosingItems(seen); // a server has responded, so the limit of the wait changes
    if (!isChoosing) end.abort(new BatonError("LOCK_BUSY", describePoolBusy(component, seen)));
  };
  using _ends = new CleanupScope(
    onAbort(signal, (reason) => end.abort(reason)),
    onAbort(limit, (reason) => isChoosing || end.abort(reason)),
  );
  try {
    return await acquireLock(zk, component, {
      ...options,
      info: { ...options.info, isChoosing: true },
      path: path.component,
      wait: waitMs,
      kind: "component",
      signal: end.signal,
      onQueued: () => {
        onQueued();
        void readWhileQueued();
      },
    });
  } catch (thrown) {
    if (signal.aborted || !isPoolBusyError(thrown) || thrown === end.signal.reason) throw thrown;
    const isLate = thrown.code === "LOCK_TIMEOUT";
    const asked = { session, clock: options.clock, why: "responded" } as const;
    const status = isLate ? seen : await withinQueueLeaveTime(asked, readStatus().catch(() => null));
    if (status === null || !isChoosingItems(status)) throw thrown;
    const [holder] = status.holders;
    const by = holder === undefined ? "" : `: ${nameOfHolder(holder)}`;
    const waited = isLate && typeof waitMs === "number" ? `; waited ${formatDuration(waitMs)}` : "";
    const message = `pool "${component}": another call is choosing items${by}${waited}`;
    throw new BatonError(thrown.code, message, { cause: thrown });
  }
}

function describePoolBusy(component: string, status: LockStatus): string {
  const holders = describeLock({ ...status, waiters: [] }, { guid: "", nowMs: Date.now() });
  return `pool "${component}" is busy: ${holders}`;
}

/**
 * Returns whether all holders are calls that choose items. Without holders, returns true, because such a call has just
 * released the lock.
 */
function isChoosingItems({ holders }: LockStatus): boolean {
  return holders.every(({ isChoosing }) => isChoosing === true);
}

/** Returns whether the error says that the component or a permit was busy. */
export function isPoolBusyError(thrown: unknown): thrown is BatonError {
  return thrown instanceof BatonError && (thrown.code === "LOCK_BUSY" || thrown.code === "LOCK_TIMEOUT");
}
