/**
 * Runs a command or a script under locks, for `baton lock` and `baton hold`. Acquires the locks in the order of their
 * names, supervises the command, and releases the locks.
 */
import type { ChildOutcome } from "../../src/base/process/spawn/child_outcome.ts";
import { LeaseNoteFile } from "../../src/base/process/supervise/lease_note.ts";
import { loadLibc } from "../../src/base/process/libc.ts";
import {
  prepareForCommand,
  superviseChild,
  type SuperviseOptions,
} from "../../src/base/process/supervise/supervise_child.ts";
import type { CommandGuard } from "../../src/base/process/guard/guard.ts";
import type { Io } from "../../src/base/terminal/io.ts";
import { StopRequestListener } from "../../src/base/process/supervise/signal_source.ts";
import { encodeSessionHandle } from "../../src/protocols/zookeeper/end_session.ts";
import type { Acl, ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import { isSessionEndError } from "../../src/protocols/zookeeper/zookeeper_error.ts";
import type { Lease } from "../../src/base/process/lease.ts";
import { chooseCoordinationServers } from "../coordination_session.ts";
import type { CoordinationServers } from "../../src/coordination/connect/coordination_servers.ts";
import {
  commandEnvironment,
  type CommandRunDependencies,
  commandRunDependencies,
  quotedNames,
  toSuperviseOptions,
} from "../../src/coordination/job/leased_command.ts";
import { decideLockEnding, type LockEnding } from "../../src/coordination/job/lock_ending.ts";
import type { LockCommandOptions } from "./lock_options.ts";
import type { StatusReportFacts } from "../../src/coordination/job/run_with_status_report.ts";
import {
  closeCoordinationSession,
  connectAndWaitDeadline,
  openCoordinationSession,
  reportServerOutages,
  waitIncludesConnecting,
  warnOfLongSessionTimeout,
} from "../../src/coordination/connect/command_session.ts";
import { acquireLock } from "../../src/coordination/lock/acquire_lock.ts";
import { lockStatus } from "../../src/coordination/lock/lock_status.ts";
import { rejectOnAbort } from "../../src/base/support/abort.ts";
import type { Clock } from "../../src/base/support/clock.ts";
import { type NestedLockCheck, nestedLockCheck } from "../../src/coordination/job/outer_locks.ts";
import { showLockWait } from "../../src/coordination/job/wait_display.ts";
import type { CallNotice } from "../../src/coordination/job/notice_command.ts";
import type { RecordedHold } from "../../src/coordination/job/recorded_hold.ts";
import { BatonError } from "../../src/base/errors.ts";
import type { HeldTick } from "./lock/tick_lock.ts";
import { describeThisHolder } from "../../src/coordination/nodes/holder_info.ts";
import type { ZooKeeperLease } from "../../src/coordination/nodes/zookeeper_lease.ts";

export interface LockedJobDependencies extends CommandRunDependencies {
  /** The guard process, which is already started. If there is nothing to guard, `runLockedJob` ends it. */
  readonly guard: CommandGuard;
  takeLocks: TakeLocksFunction;
  supervise(options: SuperviseOptions): Promise<ChildOutcome>;
}

export function lockedJobDependencies(guard: CommandGuard): LockedJobDependencies {
  return { ...commandRunDependencies(), guard, takeLocks, supervise: superviseChild };
}

/**
 * Runs the command and returns how it ended; the caller reports it. Throws BatonError for a failure before the command
 * starts, or StoppedBySignal after a signal.
 */
export async function runLockedJob(
  options: LockCommandOptions,
  io: Io,
  { deps, facts }: { readonly deps: LockedJobDependencies; readonly facts: StatusReportFacts },
): Promise<LockEnding> {
  using stop = new StopRequestListener(deps.signals);
  const { values } = options;
  // A call that is a little early waits for its tick.
  const moreMs = values.tick === undefined ? 0 : values.skew;
  using limit = connectAndWaitDeadline(deps.clock, options.waitMs, { values, stop: stop.signal, moreMs });
  let guarded = false;
  const notices: CallNotice[] = [];
  let zk: ZooKeeper | null = null;
  try {
    const what = `${options.names.length === 1 ? "lock" : "locks"} ${quotedNames(options.names)}`;
    const place = chooseCoordinationServers(options, io, { what, scope: values.scope, signal: limit.signal });
    const opened = (session: ZooKeeper) => {
      if (zk === null) warnOfLongSessionTimeout(options, io, { place, zk: session });
      zk = session;
      deps.guard.setSession(encodeSessionHandle(place.connect, session.session));
    };
    const supervised = toSuperviseOptions(options, io, deps);
    const taken = await takeInSession(options, io, { deps, place, limit: limit.signal, opened, notices });
    limit.cancel();
    facts.granted(taken.leases, taken.waitedMs);
    if (options.verbose) io.err(grantLine(taken.leases, taken.waitedMs));
    const lease = taken.leases.length === 1 ? taken.leases[0] : await setOf(taken.leases);
    using note = LeaseNoteFile.open(lease, { clock: deps.clock, libc: await loadLibc() });
    guarded = true; // from now on, supervision ends the guard process
    const outcome = await deps.supervise({
      ...supervised,
      lease,
      guard: deps.guard,
      leavesRunning: values.leaveRunning,
      grantedAtMs: taken.grantedAtMs,
      signal: stop.signal,
      env: commandEnvironment(io, { ...taken, tick: taken.tick?.run, place, note, passAuth: values.passAuth }),
    });
    facts.outcome = outcome;
    const problems = await Promise.all(taken.recorded.map((hold) => hold.end(outcome)));
    for (const problem of problems) if (problem !== null) io.err(`baton: ${problem}\n`);
    const ending = decideLockEnding(outcome, {
      what: quotedNames(options.names),
      lost: lease.lost,
      outage: lease.describeOutage?.(),
      maxHoldMs: values.maxHold,
      isScript: options.script !== undefined,
      startHint: startHintOf(options.names),
    });
    if (ending === null) throw stop.signal.reason;
    if (values.onFailure) {
      const { noticeOfCommand } = await import("../../src/coordination/job/failure_notice.ts");
      notices.push(
        noticeOfCommand(options, { io, clock: deps.clock, tick: taken.tick, outcome, ending, lost: lease.lost }),
      );
    }
    // A process that could not be killed may still run, so the session stays open until its timeout.
    if (outcome.kind === "breach") zk = null;
    return ending;
  } finally {
    if (!guarded) deps.guard.end();
    if (zk !== null) await closeCoordinationSession(zk, deps.clock, guarded ? stop.signal : limit.signal);
    if (notices.length > 0) {
      const { endNotices } = await import("../../src/coordination/job/notice_command.ts");
      await endNotices(notices, stop.signal);
    }
  }
}

/**
 * Acquires the locks. If the session expires during the wait, waits again with a new session, at the end of the queue.
 * Calls `opened` for each session; the caller closes the last session.
 */
async function takeInSession(options: LockCommandOptions, io: Io, { deps, place, limit, opened, notices }: {
  readonly deps: LockedJobDependencies;
  readonly place: CoordinationServers;
  readonly limit: AbortSignal;
  readonly opened: (zk: ZooKeeper) => void;
  readonly notices: CallNotice[];
}): Promise<TakenLocks> {
  const { clock } = deps;
  const { quiet, waitMs } = options;
  const startMs = clock.now();
  const what = quotedNames(options.names);
  for (let isPatient = waitIncludesConnecting(waitMs, options.values);; isPatient = true) {
    const zk = await openCoordinationSession(deps.connect, place.connect, { isPatient, io, clock, quiet, what });
    opened(zk);
    try {
      const context = { io, clock, signal: limit, acl: place.connect.acl, startMs, notices };
      const taking = deps.takeLocks(zk, options, context);
      setImmediate(() => prepareForCommand(options.command)); // loads libc while the servers work
      return await taking;
    } catch (thrown) {
      if (waitMs === 0 || limit.aborted || !isSessionEndError(zk.session.ended.reason)) throw thrown;
      if (!quiet) {
        io.err(`baton: the session that waited for ${what} has expired; waiting again at the end of the queue\n`);
      }
    }
  }
}

/**
 * Returns a hint for a command that contains --. If no other -- comes before the command, its first words count as lock
 * names.
 */
function startHintOf(names: readonly string[]): string {
  return names.length === 1 ? "" : `; the words before -- are names of locks: ${quotedNames(names)}`;
}

async function setOf(leases: TakenLocks["leases"]): Promise<Lease> {
  const { LeaseSet } = await import("../../src/base/process/lease_set.ts");
  return new LeaseSet(leases);
}

function grantLine(leases: readonly Lease[], waitedMs: number): string {
  return leases.map((lease) =>
    `baton: "${lease.name}" is locked after ${Math.round(waitedMs)} ms as ${lease.holderId}, ` +
    `token ${lease.fencingToken}, session timeout ${lease.sessionTimeoutMs} ms\n`
  ).join("");
}

export interface TakeLocksContext {
  readonly io: Io;
  readonly clock: Clock;
  /** Aborts when the call is stopped or its time to wait has passed. */
  readonly signal: AbortSignal;
  readonly acl: Acl[] | undefined;
  /** The time on the clock when the wait began, possibly in an earlier session. */
  readonly startMs: number;
  /** Gets the notices whose shell command may still run when the locks are taken, or refused. */
  readonly notices: CallNotice[];
}

export interface TakenLocks {
  /** The leases in the order of the names. */
  readonly leases: readonly [Lease, ...Lease[]];
  readonly waitedMs: number;
  /** The time on the clock when the last lock was granted. */
  readonly grantedAtMs: number;
  /** The tick that was acquired together with the lock; undefined if there is none. */
  readonly tick?: HeldTick | undefined;
  /** The holds whose end must be recorded. */
  readonly recorded: readonly RecordedHold[];
}

/**
 * Acquires all locks of a call. Rejects like acquireLock, or with USAGE if the command around this call already holds a
 * lock. After a failure the caller closes the session, which releases the locks acquired so far.
 */
export type TakeLocksFunction = (
  zk: ZooKeeper,
  options: LockCommandOptions,
  context: TakeLocksContext,
) => Promise<TakenLocks>;

export const takeLocks: TakeLocksFunction = async (zk, options, context) => {
  const { clock, io, startMs } = context;
  const names = quotedNames(options.names);
  using _outage = reportServerOutages(zk, names, { io, clock, quiet: options.quiet });
  const refuseHeld = nestedLockCheck(io);
  if (refuseHeld !== null) await rejectOnAbort(refuseNested(zk, options, refuseHeld), context.signal);
  const [first = "", ...others] = options.names;
  const taken = await takeLock(zk, first, { options, context });
  const leases: [ZooKeeperLease, ...ZooKeeperLease[]] = [taken.lease];
  const recorded = [taken.recorded];
  for (const name of others) {
    // The locks acquired so far can be lost or revoked while the call waits for the next lock. No command runs under
    // them yet.
    for (const lease of leases) lease.setUsed(false);
    const signal = AbortSignal.any([context.signal, ...leases.map((lease) => lease.lost)]);
    const next = await takeLock(zk, name, { options, context: { ...context, signal } });
    leases.push(next.lease);
    recorded.push(next.recorded);
  }
  for (const lease of leases) lease.setUsed(true);
  const grantedAtMs = clock.now();
  return {
    leases,
    waitedMs: grantedAtMs - startMs,
    grantedAtMs,
    tick: taken.tick,
    recorded: recorded.filter((hold) => hold !== undefined),
  };
};

async function refuseNested(zk: ZooKeeper, options: LockCommandOptions, refuseHeld: NestedLockCheck): Promise<void> {
  const { recipe, root } = options.values;
  for (const name of options.names) {
    await refuseHeld(name, async () => {
      if (recipe === undefined) return (await lockStatus(zk, name, { root })).holders;
      const { readInteropLockStatus } = await import("../../src/coordination/interop/interop_status.ts");
      return (await readInteropLockStatus(zk, name, { recipe })).holders;
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
  }
> {
  const { values, mode, limit, waitMs } = options;
  const { clock, signal, acl, startMs } = context;
  using progress = showLockWait(name, options, context.io);
  const common = {
    mode,
    clock,
    signal,
    wait: waitMs === 0 ? "none" : "forever",
    sinceMs: startMs,
    info: describeThisHolder(options),
    ...progress.options,
    ...(acl === undefined ? {} : { acl }),
  } as const;
  const { recipe, priority, root } = values;
  if (recipe !== undefined) {
    const { acquireInteropLock } = await import("../../src/coordination/interop/interop_contender.ts");
    return { lease: await acquireInteropLock(zk, name, { ...common, recipe }) };
  }
  if (values.tick !== undefined) {
    const { takeLockWithTick } = await import("./lock/tick_lock.ts");
    const { lease, tick } = await takeLockWithTick(zk, name, {
      options,
      context,
      common: { ...common, priority, root },
      show: progress.show,
    });
    return { lease, tick, recorded: tick };
  }
  const permits = limit === undefined ? {} : { limit };
  const notice = values.onBusyFor === undefined
    ? undefined
    : (await import("./lock/busy_notice_watch.ts")).openBusyNotice(zk, name, { line: values.onBusyFor, root, context });
  const acquire = () =>
    acquireLock(zk, name, {
      ...common,
      priority,
      root,
      ...permits,
      ...(notice === undefined ? {} : { onQueued: () => notice.start() }),
    }).finally(() => notice?.stop());
  try {
    if (!values.history) return { lease: await acquire() };
    const { HoldRecorder } = await import("../../src/coordination/job/recorded_hold.ts");
    const recorder = new HoldRecorder(zk, { kind: "lock", values, info: common.info, acl, clock });
    const lease = await recorder.countIfRefused(name, acquire());
    return { lease, recorded: recorder.begin(lease) };
  } catch (thrown) {
    const isBusy = thrown instanceof BatonError && (thrown.code === "LOCK_BUSY" || thrown.code === "LOCK_TIMEOUT");
    await (isBusy ? notice?.checkOnce() : notice?.kill());
    throw thrown;
  }
}
