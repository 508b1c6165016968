/**
 * The component's lock, which a call of a pool holds while it lists and chooses items. A call that comes meanwhile waits for
 * it, as choosing takes a moment; it does not wait for a holder that is no call of a pool and may keep the lock for hours.
 */
import type { Acl, ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { BatonError } from "../../errors.ts";
import { onAbort } from "../../support/abort.ts";
import type { Clock } from "../../support/clock.ts";
import { formatDuration } from "../../support/duration.ts";
import { type HolderInfo, nameOfHolder } from "../holder_info.ts";
import { withinLeaveTime } from "../leave_time.ts";
import { acquireLock } from "../lock/acquire_lock.ts";
import { describeLock } from "../lock/lock_messages.ts";
import { type LockStatus, lockStatus } from "../lock/lock_status.ts";
import type { ZooKeeperLease } from "../zookeeper_lease.ts";
import type { PoolWait } from "./pool_run_options.ts";
import type { PoolPath } from "./pool_path.ts";

export interface LockComponentOptions {
  readonly path: PoolPath;
  readonly wait: PoolWait;
  readonly clock: Clock;
  readonly info: HolderInfo;
  readonly acl: Acl[];
  readonly signal: AbortSignal;
  /** The end of the time in which a server has to answer, and with a `wait` in milliseconds the end of that. */
  readonly limit: AbortSignal;
  /** Called when somebody else has to be waited for, each time that this is found. */
  readonly onQueued: () => void;
}

/** Rejects LOCK_BUSY, LOCK_TIMEOUT, the signal's reason, and what acquireLock rejects with. */
export async function lockComponent(
  zk: ZooKeeper,
  component: string,
  { path, wait, signal, limit, onQueued, ...options }: LockComponentOptions,
): Promise<ZooKeeperLease> {
  const { session } = zk;
  const isPatient = typeof wait !== "object";
  const waitMs = isPatient ? wait : wait.whileChoosingMs;
  const end = new AbortController();
  let seen: LockStatus | null = null;
  let isChoosing = false;
  const look = () => lockStatus(zk, component, { path: path.component, detailsMax: 1 });
  const lookWhileQueued = async () => {
    seen = await look().catch(() => null); // the wait itself has the same failure
    if (isPatient || seen === null) return;
    isChoosing = isChoosingItems(seen); // a server has answered, and the wait has another limit now
    if (!isChoosing) end.abort(new BatonError("LOCK_BUSY", heldBy(component, seen)));
  };
  const offs = [
    onAbort(signal, (reason) => end.abort(reason)),
    onAbort(limit, (reason) => isChoosing || end.abort(reason)),
  ];
  try {
    return await acquireLock(zk, component, {
      ...options,
      info: { ...options.info, isChoosing: true },
      path: path.component,
      wait: waitMs,
      thing: "component",
      signal: end.signal,
      onQueued: () => {
        onQueued();
        void lookWhileQueued();
      },
    });
  } catch (thrown) {
    if (signal.aborted || !isBusy(thrown) || thrown === end.signal.reason) throw thrown;
    const isLate = thrown.code === "LOCK_TIMEOUT";
    const asked = { session, clock: options.clock, why: "answered" } as const;
    const status = isLate ? seen : await withinLeaveTime(asked, look().catch(() => null));
    if (status === null || !isChoosingItems(status)) throw thrown;
    const [holder] = status.holders;
    const by = holder === undefined ? "" : `: ${nameOfHolder(holder)}`;
    const waited = isLate && typeof waitMs === "number" ? `; waited ${formatDuration(waitMs)}` : "";
    const message = `pool "${component}": another call is choosing items${by}${waited}`;
    throw new BatonError(thrown.code, message, { cause: thrown });
  } finally {
    for (const off of offs) off();
  }
}

function heldBy(component: string, status: LockStatus): string {
  const holders = describeLock({ ...status, waiters: [] }, { guid: "", nowMs: Date.now() });
  return `Cannot acquire component "${component}": ${holders}`;
}

/** As far as is known by a call that was not granted the lock: a holder that has just left was choosing, too. */
function isChoosingItems({ holders }: LockStatus): boolean {
  return holders.every(({ isChoosing }) => isChoosing === true);
}

/** The component, or a permit, was not to be had. */
export function isBusy(thrown: unknown): thrown is BatonError {
  return thrown instanceof BatonError && (thrown.code === "LOCK_BUSY" || thrown.code === "LOCK_TIMEOUT");
}
