/** `baton lock --tick`: the tick of a schedule that the lock is taken with. Loaded only with that option. */
import type { ChildEnding } from "../../src/process/spawn/child_outcome.ts";
import type { ZooKeeper } from "../../src/zookeeper/zookeeper.ts";
import { acquireTick } from "../../src/coordination/tick/acquire_tick.ts";
import type { TickEnd } from "../../src/coordination/tick/tick_claim.ts";
import type { TickAttempt } from "../../src/coordination/tick/tick_decision.ts";
import type { AcquireOptions } from "../../src/coordination/lock/acquire_lock.ts";
import type { HolderInfo } from "../../src/coordination/holder_info.ts";
import type { Lease } from "../../src/process/lease.ts";
import { localZone } from "../../src/schedule/civil_time.ts";
import { Schedule } from "../../src/schedule/schedule.ts";
import { systemClock } from "../../src/support/clock.ts";
import { BatonError, messageOf } from "../../src/errors.ts";
import type { LockCommandOptions } from "./lock_options.ts";

export interface HeldTick {
  readonly run: TickAttempt;
  /** Records how the command ended, and releases the lock. Returns the reason if the end could not be recorded. */
  end(ending: ChildEnding): Promise<string | null>;
}

/** A tick without --catch-up begins at most this long after its time and --skew, in milliseconds. */
export const lateMsDefault = 60_000;

/** Returns the schedule of the call. Throws USAGE for an invalid schedule or time zone. */
export function scheduleOf(
  { tick, timezone }: Pick<LockCommandOptions["values"], "tick" | "timezone">,
  env: Readonly<Record<string, string | undefined>>,
): Schedule {
  return new Schedule(tick ?? "", scheduleZone(timezone, env));
}

/** Returns the time zone of schedules: the given one, or that of the environment, or this machine's. */
export function scheduleZone(given: string | undefined, env: Readonly<Record<string, string | undefined>>): string {
  return given ?? (env["CRON_TZ"] || zoneOf(env["TZ"]) || localZone());
}

/** The value of TZ; undefined for the path of a file. */
function zoneOf(written: string | undefined): string | undefined {
  const zone = written?.replace(/^:/, "");
  return zone?.startsWith("/") ? undefined : zone;
}

/** Rejects as acquireTick does. */
export async function takeTick(
  zk: ZooKeeper,
  name: string,
  { options, env, common }: {
    readonly options: LockCommandOptions;
    readonly env: Readonly<Record<string, string | undefined>>;
    readonly common: Omit<AcquireOptions, "claim" | "mode" | "limit"> & { readonly info: HolderInfo };
  },
): Promise<{ readonly lease: Lease; readonly tick: HeldTick }> {
  const { skew: skewMs, catchUp, retry: retriesMax = 0, replaceSchedule: replaces } = options.values;
  const clock = common.clock ?? systemClock();
  const { lease, run, end } = await acquireTick(zk, name, {
    ...common,
    tick: {
      schedule: scheduleOf(options.values, env),
      lateMsMax: catchUp ?? skewMs + lateMsDefault,
      waits: options.waitMs !== 0,
      ...{ skewMs, retriesMax, replaces, clock, info: common.info, root: common.root, acl: common.acl ?? zk.acl },
      ...{ wallMs: Date.now, random: Math.random },
    },
  });
  return {
    lease,
    tick: {
      run,
      async end(ending) {
        const facts = tickEndOf(ending);
        return facts === null ? null : await end(facts).catch(messageOf);
      },
    },
  };
}

/** Null: the lock is lost, and the next call records that. */
export function tickEndOf(ending: ChildEnding): TickEnd | null {
  const nothing = { exitCode: null, signal: null };
  switch (ending.kind) {
    case "exited":
      return ending.code === 0
        ? { result: "done", exitCode: 0, signal: null, why: "" }
        : { result: "failed", exitCode: ending.code, signal: null, why: `exit code ${ending.code}` };
    case "signaled":
      return { result: "failed", exitCode: null, signal: ending.signal, why: `ended by ${ending.signal}` };
    case "time_limit":
      return { result: "failed", ...nothing, why: "stopped: it ran longer than --max-hold" };
    case "revoked":
      return { result: "stopped", ...nothing, why: "stopped: the lock was asked back" };
    case "cancelled":
      return { result: "stopped", ...nothing, why: "a signal came before the command was started" };
    case "not_found":
    case "not_executable":
    case "start_failed":
      return { result: "failed", ...nothing, why: ending.message };
    case "unreadable":
      return { result: "failed", ...nothing, why: ending.why };
    case "lost":
    case "breach":
      return null;
  }
}

/** Throws USAGE for options that --tick excludes or needs. */
export function refuseTickPairs(options: LockCommandOptions): void {
  const { names, values } = options;
  const refuse = (what: string) => new BatonError("USAGE", what);
  if (names.length > 1) throw refuse("--tick takes one lock: its ticks are stored under the name of that lock");
  if (values.retry !== undefined && values.catchUp === undefined) {
    throw refuse("--retry needs --catch-up, which limits how long after its time a tick may be tried again");
  }
  if (values.overlap === "skip" && values.wait !== undefined) throw refuse("--overlap skip and -w do not go together");
  if (values.overlap === "wait" && values.try) throw refuse("--overlap wait and -n do not go together");
}
