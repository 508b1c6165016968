/** Acquires all requested locks, one after the other in the order of their names, and displays the wait. */
import type { Io } from "../../../src/base/terminal/io.ts";
import type { Acl, ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import type { Lease } from "../../../src/base/process/lease.ts";
import { acquireLock } from "../../../src/coordination/lock/acquire_lock.ts";
import { lockStatus } from "../../../src/coordination/lock/lock_status.ts";
import { abortable } from "../../../src/base/support/abort.ts";
import type { Clock } from "../../../src/base/support/clock.ts";
import type { LockCommandOptions } from "./lock_options.ts";
import { quotedNames } from "../../../src/coordination/job/job.ts";
import { type NestedJob, nestedJob } from "../../../src/coordination/job/held_job.ts";
import { reportOutages, showProgress } from "../../../src/coordination/job/wait_display.ts";
import type { RecordedHold } from "../../../src/coordination/job/recorded_hold.ts";
import { BatonError } from "../../../src/base/errors.ts";
import type { BusyNoticeWatch } from "./busy_notice_watch.ts";
import type { HeldTick } from "./tick_lock.ts";
import { holderInfo } from "../../../src/coordination/nodes/holder_info.ts";
import type { ZooKeeperLease } from "../../../src/coordination/nodes/zookeeper_lease.ts";

export interface TakeLocksContext {
  readonly io: Io;
  readonly clock: Clock;
  /** Aborts when the call is stopped or its wait limit is reached. */
  readonly signal: AbortSignal;
  readonly acl: Acl[] | undefined;
  /** Start of the wait on the clock, possibly in an earlier session. */
  readonly startMs: number;
}

export interface TakenLocks {
  /** Leases in the order of the names. */
  readonly leases: readonly [Lease, ...Lease[]];
  readonly waitedMs: number;
  /** Time of the last grant on the clock. */
  readonly grantedAtMs: number;
  /** The tick that the lock was taken with, if any. */
  readonly tick?: HeldTick | undefined;
  /** The holds whose end is to be recorded. */
  readonly recorded: readonly RecordedHold[];
  /** Notices whose command may still run. */
  readonly notices: readonly BusyNoticeWatch[];
}

/**
 * Rejects as acquireLock does, and with USAGE for a lock that the command around this call holds already. The caller
 * closes the session, which releases the locks that were acquired before the failure.
 */
export type TakeLocks = (zk: ZooKeeper, options: LockCommandOptions, context: TakeLocksContext) => Promise<TakenLocks>;

export const takeLocks: TakeLocks = async (zk, options, context) => {
  const { clock, io, startMs } = context;
  const names = quotedNames(options.names);
  using _outage = reportOutages(zk, names, { io, clock, quiet: options.quiet });
  const refuseHeld = nestedJob(io);
  if (refuseHeld !== null) await abortable(refuseNested(zk, options, refuseHeld), context.signal);
  const [first = "", ...others] = options.names;
  const taken = await takeLock(zk, first, { options, context });
  const leases: [ZooKeeperLease, ...ZooKeeperLease[]] = [taken.lease];
  const recorded = [taken.recorded];
  const notices = [taken.notice];
  for (const name of others) {
    // The locks acquired so far can be lost or revoked during the wait for the next one. No command runs under them
    // yet.
    for (const lease of leases) lease.setUsed(false);
    const signal = AbortSignal.any([context.signal, ...leases.map((lease) => lease.lost)]);
    const next = await takeLock(zk, name, { options, context: { ...context, signal } });
    leases.push(next.lease);
    recorded.push(next.recorded);
    notices.push(next.notice);
  }
  for (const lease of leases) lease.setUsed(true);
  const grantedAtMs = clock.now();
  return {
    ...{ leases, waitedMs: grantedAtMs - startMs, grantedAtMs, tick: taken.tick },
    recorded: recorded.filter((hold) => hold !== undefined),
    notices: notices.filter((notice) => notice !== undefined),
  };
};

async function refuseNested(zk: ZooKeeper, options: LockCommandOptions, refuseHeld: NestedJob): Promise<void> {
  const { recipe, root } = options.values;
  for (const name of options.names) {
    await refuseHeld(name, async () => {
      if (recipe === undefined) return (await lockStatus(zk, name, { root })).holders;
      const { interopStatus } = await import("../../../src/coordination/interop/interop_status.ts");
      return (await interopStatus(zk, name, { recipe })).holders;
    });
  }
}

async function takeLock(
  zk: ZooKeeper,
  name: string,
  { options, context }: { options: LockCommandOptions; context: TakeLocksContext },
): Promise<
  {
    readonly lease: ZooKeeperLease;
    readonly tick?: HeldTick;
    readonly recorded?: RecordedHold | undefined;
    readonly notice?: BusyNoticeWatch | undefined;
  }
> {
  const { values, mode, limit, waitMs } = options;
  const { clock, signal, acl, startMs } = context;
  using progress = showProgress(name, options, context.io);
  const common = {
    mode,
    clock,
    signal,
    wait: waitMs === 0 ? "none" : "forever",
    sinceMs: startMs,
    info: holderInfo(options),
    ...progress.options,
    ...(acl === undefined ? {} : { acl }),
  } as const;
  const { recipe, priority, limitPolicy, root } = values;
  if (recipe !== undefined) {
    const { acquireInteropLock } = await import("../../../src/coordination/interop/interop_contender.ts");
    return { lease: await acquireInteropLock(zk, name, { ...common, recipe }) };
  }
  if (values.tick !== undefined) {
    const { takeTick } = await import("./tick_lock.ts");
    const { lease, tick } = await takeTick(zk, name, {
      options,
      env: context.io.env,
      common: { ...common, priority, root },
    });
    return { lease, tick, recorded: tick };
  }
  const permits = limit === undefined ? {} : { limit };
  const notice = values.onBusyFor === undefined
    ? undefined
    : (await import("./busy_notice_watch.ts")).openNotice(zk, name, { line: values.onBusyFor, root, context });
  const acquire = () =>
    acquireLock(zk, name, {
      ...{ ...common, priority, limitPolicy, root, ...permits },
      ...(notice === undefined ? {} : { onQueued: () => notice.start() }),
    }).finally(() => notice?.stop());
  try {
    if (!values.history) return { lease: await acquire(), notice };
    const { HoldRecorder } = await import("../../../src/coordination/job/recorded_hold.ts");
    const recorder = new HoldRecorder(zk, { kind: "lock", values, info: common.info, acl, clock });
    const lease = await recorder.countIfRefused(name, acquire());
    return { lease, notice, recorded: recorder.begin(lease) };
  } catch (thrown) {
    const isBusy = thrown instanceof BatonError && (thrown.code === "LOCK_BUSY" || thrown.code === "LOCK_TIMEOUT");
    await (isBusy ? notice?.checkOnce() : notice?.kill());
    throw thrown;
  }
}
