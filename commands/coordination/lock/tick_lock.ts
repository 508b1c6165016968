/** `baton lock --tick`: acquires a lock together with a tick of a schedule. Loaded only if this option is given. */
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { acquireTick } from "../../../src/coordination/tick/acquire_tick.ts";
import { tickLateMsDefault } from "../../../src/coordination/tick/tick_claim.ts";
import { type TickAttempt, tickRetryDelayMsDefault } from "../../../src/coordination/tick/tick_decision.ts";
import type { AcquireLockOptions } from "../../../src/coordination/lock/acquire_lock.ts";
import type { HolderInfo } from "../../../src/coordination/nodes/holder_info.ts";
import type { ZooKeeperLease } from "../../../src/coordination/nodes/zookeeper_lease.ts";
import { chooseScheduleZone } from "../../../src/base/schedule/local_zone.ts";
import { Schedule } from "../../../src/base/schedule/schedule.ts";
import type { Io } from "../../../src/base/terminal/io.ts";
import type { CallNotice } from "../../../src/coordination/job/notice_command.ts";
import { type Clock, systemClock } from "../../../src/base/support/clock.ts";
import { BatonError, errorMessage } from "../../../src/base/errors.ts";
import { formatUtcSecond } from "../../../src/base/support/instant.ts";
import type { HistoryRecord } from "../../../src/coordination/history/history_record.ts";
import { readHistoryLimits, toTickEnd } from "../../../src/coordination/job/hold_end.ts";
import type { RecordedHold } from "../../../src/coordination/job/recorded_hold.ts";
import type { LockCommandOptions } from "../lock_options.ts";

export interface HeldTick extends RecordedHold {
  readonly run: TickAttempt;
  /** Returns true if `end` has recorded that the tick failed and is not tried again. */
  hasFailedFinally(): boolean;
}

/** Returns a function that tells of an earlier tick, which this call has given up. */
async function givenUpNotice(
  name: string,
  line: string,
  { notices, ...deps }: { readonly io: Io; readonly clock: Clock; readonly notices: CallNotice[] },
): Promise<(record: HistoryRecord) => void> {
  const { failedJobOfTick, FailureNotices } = await import("../../../src/coordination/job/failure_notice.ts");
  const notice = new FailureNotices(line, deps);
  notices.push(notice);
  return (record) => notice.run(failedJobOfTick(name, record));
}

/** Returns the schedule of the call. Throws USAGE for an invalid schedule or time zone. */
export function readTickSchedule(
  name: string,
  { tick, timezone, jitter = 0 }: Pick<LockCommandOptions["values"], "tick" | "timezone" | "jitter">,
  env: Readonly<Record<string, string | undefined>>,
): Schedule {
  return new Schedule(tick ?? "", chooseScheduleZone(timezone, env)).spread(name, jitter);
}

/** Acquires the lock together with a tick that is due. Rejects like acquireTick. */
export async function takeLockWithTick(
  zk: ZooKeeper,
  name: string,
  { options, context: { io, notices }, common, show }: {
    readonly options: LockCommandOptions;
    readonly context: { readonly io: Io; readonly notices: CallNotice[] };
    readonly common: Omit<AcquireLockOptions, "claim" | "mode" | "limit"> & { readonly info: HolderInfo };
    /** Shows why the call waits; undefined if nothing is shown. */
    readonly show: ((text: string) => void) | undefined;
  },
): Promise<{ readonly lease: ZooKeeperLease; readonly tick: HeldTick }> {
  const { skew: skewMs, catchUp, retry: retriesMax = 0, replaceSchedule: replaces, onFailure } = options.values;
  const clock = common.clock ?? systemClock();
  const onGivenUp = onFailure === undefined ? undefined : await givenUpNotice(name, onFailure, { io, clock, notices });
  const { lease, run, end, hasFailedFinally, unrecorded } = await acquireTick(zk, name, {
    ...common,
    onEarly: ({ atMs, nextTickMs }) =>
      show?.(
        `waiting until ${formatUtcSecond(atMs)} for the next ${atMs === nextTickMs ? "tick" : "try of a tick"} of ` +
          JSON.stringify(name),
      ),
    tick: {
      schedule: readTickSchedule(name, options.values, io.env),
      lateMsMax: catchUp ?? skewMs + tickLateMsDefault,
      waits: options.waitMs !== 0,
      skewMs,
      retriesMax,
      retryDelayMs: tickRetryDelayMsDefault,
      lostDelayMs: 0,
      replaces,
      clock,
      info: common.info,
      root: common.root,
      acl: common.acl ?? zk.acl,
      limits: readHistoryLimits(options.values),
      wallMs: Date.now,
      random: Math.random,
      onGivenUp,
    },
  });
  return {
    lease,
    tick: {
      run,
      hasFailedFinally,
      async end(ending) {
        const facts = toTickEnd(ending, lease.lost);
        const problem = facts === null ? null : await end(facts).catch(errorMessage);
        if (problem !== null) return `the end of the tick is not recorded: ${problem}`;
        return unrecorded() === null ? null : `the tick is not in its history: ${unrecorded()}`;
      },
    },
  };
}

/** Throws USAGE for options that --tick excludes, for missing options, and for an invalid schedule. */
export function checkTickOptions(
  { names, values }: Pick<LockCommandOptions, "names" | "values">,
  env: Readonly<Record<string, string | undefined>>,
): void {
  const refuse = (what: string) => new BatonError("USAGE", what);
  if (names.length > 1) throw refuse("--tick takes one lock: its ticks are stored under the name of that lock");
  if (values.retry !== undefined && values.catchUp === undefined) {
    throw refuse("--retry needs --catch-up, which limits how long after its time a tick may be tried again");
  }
  if (values.overlap === "skip" && values.wait !== undefined) throw refuse("--overlap skip and -w exclude each other");
  if (values.overlap === "wait" && values.try) throw refuse("--overlap wait and -n cannot be used together");
  readTickSchedule(names[0] ?? "", values, env);
}
