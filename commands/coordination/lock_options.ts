/** The options of `baton lock`, and which options exclude each other. Pure. */
import type { ConfigSources } from "../../src/base/config/resolve_settings.ts";
import {
  flagSetting,
  putSettingsIntoGroup,
  type SettingTable,
  type SettingValues,
  toggleSetting,
} from "../../src/base/config/setting.ts";
import {
  connectionSettings,
  historySettings,
  lockSettings,
} from "../../src/coordination/settings/coordination_settings.ts";
import { choiceType, durationType, integerType, textType, waitTimeType } from "../../src/base/config/value_types.ts";
import { BatonError } from "../../src/base/errors.ts";
import { interopLockPath, interopRecipes } from "../../src/coordination/nodes/interop_node_names.ts";
import type { LockMode } from "../../src/base/process/lease.ts";
import type { CommandSyntax } from "../../src/base/terminal/parse_args.ts";
import { encodeLockName } from "../../src/coordination/nodes/node_paths.ts";
import { type CommandCall, oneNameCommandSyntax, shellLineSettings } from "../command.ts";
import { leasedCommandFlags } from "../../src/coordination/job/leased_command_flags.ts";

const flags = {
  try: toggleSetting("-n, --try", {
    aliases: "--nonblock, --nb",
    group: "waiting",
    basic: true,
    help: "do not wait; exit 75 if the lock is busy, 69 if no server responds within --connect-timeout",
  }),
  wait: flagSetting("-w, --wait", waitTimeType(), {
    aliases: "--timeout",
    group: "waiting",
    basic: true,
    help: "wait at most this long, including the time to connect; then exit 75 (busy) or 69 (no server)",
    unset: "lock.foreground.wait or lock.background.wait if set, otherwise no limit; `forever` overrides both",
  }),
  conflictExitCode: flagSetting("-E, --conflict-exit-code", integerType("code", { min: 0, max: 255 }), {
    group: "waiting",
    basic: true,
    help: "the exit code instead of 75",
  }),
  skip: toggleSetting("--skip", {
    group: "waiting",
    basic: true,
    help: "for cron: if the lock is busy, exit 0 and print nothing. Waits only with -w",
  }),
  exclusive: toggleSetting("-x, --exclusive", {
    aliases: "-e",
    help: "exclusive lock: no other process may hold it; this is the default",
  }),
  shared: toggleSetting("-s, --shared", {
    basic: true,
    help: "shared (read) lock: any number of -s holders at a time",
  }),
  limit: flagSetting("-N, --limit", integerType("count", { min: 1, max: 1_000_000 }), {
    basic: true,
    help: "semaphore: at most N processes hold it, all with the same N",
  }),
  recipe: flagSetting("--recipe", choiceType(interopRecipes), {
    help: "take a lock that Curator or kazoo programs use too; NAME is the path of its node",
  }),
  reason: flagSetting("--reason", textType("text"), {
    basic: true,
    help: "why you take the lock; shown by baton who",
  }),
  maxHold: flagSetting("--max-hold", durationType({ minMs: 1 }), {
    group: "command",
    basic: true,
    help: "stop the command if it runs longer than this (exit 124)",
  }),
  onBusyFor: flagSetting("--on-busy-for", textType("duration command"), {
    group: "waiting",
    help: "when the lock has been held this long, run this command, once per hold on one host; limit 30s. " +
      "Example: '1h ./tell.sh'",
  }),
  onFailure: flagSetting("--on-failure", textType("command"), {
    group: "command",
    help: "when the command has failed for good, run this command once; limit 30s",
  }),
  leaveRunning: toggleSetting("--leave-running", {
    aliases: "-o, --close",
    group: "command",
    help: "do not stop processes that the command leaves in the background: they continue without the lock",
  }),
  ...leasedCommandFlags,
} satisfies SettingTable;

/** Settings for a lock that is acquired together with a tick of a schedule. */
export const tickSettings = putSettingsIntoGroup("ticks", {
  tick: flagSetting("--tick", textType("schedule"), {
    help: "run at most once for each time of this schedule, on the host that calls first: five fields as in " +
      "crontab(5), or @daily and the like; exit 81 if another host has the tick, or none is due",
  }),
  timezone: flagSetting("--timezone", textType("zone"), {
    help: "time zone of the schedule on all hosts, such as Europe/Berlin",
    unset: "CRON_TZ, TZ, or the host's",
  }),
  jitter: flagSetting("--jitter", durationType({ maxMs: 24 * 3_600_000 }), {
    help: "delay the ticks by a time up to this, which depends on the name of the lock: the same on all hosts",
  }),
  catchUp: flagSetting("--catch-up", durationType({ maxMs: 30 * 24 * 3_600_000 }), {
    help: "start a tick up to this long after its time, if no host called earlier; at most 30d",
    unset: "a minute more than --skew",
  }),
  retry: flagSetting("--retry", integerType("count", { min: 1, max: 100 }), {
    help:
      "repeat a tick up to N times within --catch-up: a minute after its command failed (sooner if time is short), " +
      "or when its host died",
  }),
  overlap: flagSetting("--overlap", choiceType(["skip", "wait"]), {
    help: "if the lock is busy when a tick is due: skip the tick, or wait and then run the newest one",
    unset: "skip, or wait with -w",
  }),
  skew: flagSetting("--skew", durationType({ minMs: 100, maxMs: 3_600_000 }), {
    help: "exit 78 if this host's clock differs from the servers' by more than this; a call that is this early, but " +
      "at most half a period, waits for its tick",
    default: 30_000,
  }),
  replaceSchedule: toggleSetting("--replace-schedule", {
    help:
      "take over a schedule that other hosts use with another time zone, or that is settled up to a time in the future",
  }),
}) satisfies SettingTable;

export const lockCommandSettings = {
  ...flags,
  ...tickSettings,
  ...shellLineSettings,
  ...lockSettings,
  ...historySettings,
  ...connectionSettings,
} satisfies SettingTable;

/** The syntax of `baton lock`: one name and a command, or several names, `--` and a command. */
export const lockCommandSyntax: CommandSyntax = {
  ...oneNameCommandSyntax,
  flagHints: {
    "-u, --unlock": "a lock ends with its command; baton release NAME ends what baton hold has acquired",
    "-F, --no-fork": "baton has to run beside the command, to stop it when the lock is lost; leave the option out",
    "--fcntl": "baton locks no file: NAME is the name of a lock on the servers; leave the option out",
  },
};

type LockValues = SettingValues<typeof lockCommandSettings>;

export interface LockCommandOptions {
  /**
   * The names of the locks, sorted and without duplicates: two calls with the same names then cannot wait for each
   * other.
   */
  readonly names: readonly string[];
  readonly command: readonly [string, ...string[]];
  readonly mode: LockMode;
  /** The number of permits of a semaphore; undefined for other locks. */
  readonly limit: number | undefined;
  /** The longest wait in milliseconds. If it is 0, the call does not wait; undefined means no limit. */
  readonly waitMs: number | undefined;
  readonly quiet: boolean;
  readonly verbose: boolean;
  readonly values: LockValues;
  readonly sources: ConfigSources;
  /** The process of the script, for `baton hold`. If undefined, this process holds the lock. */
  readonly script?: { readonly pid: number };
}

export type LockCommandCall = Pick<CommandCall<typeof lockCommandSettings>, "values" | "names" | "sources">;

/** The default of --priority. */
const foregroundPriority = 100;
/**
 * A call with this priority number or a higher one is a background call. Background calls have a different default
 * wait.
 */
const backgroundPriority = 200;

/** Returns the options. Throws USAGE for missing or contradictory arguments. */
export function readLockOptions(call: CommandCall<typeof lockCommandSettings>): LockCommandOptions {
  const example = "as in: baton lock NAME COMMAND";
  const terms = readCommonLockOptions(call, "lock", example);
  // program_names.ts explains why -- can be written twice after several names.
  const isTwice = call.names.length > 1 && call.command?.[0] === "--";
  const [program, ...args] = call.command?.slice(isTwice ? 1 : 0) ?? [];
  if (program === undefined) {
    throw new BatonError(
      "USAGE",
      `baton lock needs a command, ${example}; baton hold holds a lock over several steps of a script`,
    );
  }
  return { ...terms, command: [program, ...args] };
}

/** Returns the locks, their mode and the wait. Throws USAGE for missing or contradictory arguments. */
export function readCommonLockOptions(
  call: LockCommandCall,
  command: string,
  example: string,
): Omit<LockCommandOptions, "command"> {
  const { values, names, sources } = call;
  if (names.length === 0) throw new BatonError("USAGE", `baton ${command} needs the name of a lock, ${example}`);
  // Both functions throw if the name is invalid.
  names.forEach((name) => values.recipe === undefined ? encodeLockName(name) : interopLockPath(name));
  refusePairs(values, sources.flags);
  return {
    names: [...new Set(names)].sort(),
    mode: values.shared ? "shared" : values.limit === undefined ? "exclusive" : "permit",
    limit: values.limit,
    waitMs: waitMsOf(values),
    quiet: values.quiet,
    verbose: values.verbose,
    values,
    sources,
  };
}

function refusePairs(values: LockValues, flags: ConfigSources["flags"]): void {
  const pairs = [
    [values.try, "-n", values.wait !== undefined, "-w"],
    [values.skip, "--skip", values.conflictExitCode !== undefined, "-E"],
    [values.shared, "-s", values.limit !== undefined, "-N"],
    [values.exclusive, "-x", values.shared, "-s"],
    [values.exclusive, "-x", values.limit !== undefined, "-N"],
    [values.recipe !== undefined, "--recipe", values.limit !== undefined, "-N"],
    [values.recipe !== undefined, "--recipe", values.priority !== foregroundPriority, "--priority"],
    // A root from a file or a variable applies only to baton's own locks.
    [values.recipe !== undefined, "--recipe", flags.has("root"), "--root (such a lock is named by its whole path)"],
    [values.recipe === "curator", "--recipe curator", values.shared, "-s (that is --recipe curator-rw)"],
    [values.recipe !== undefined, "--recipe", flags.has("history"), "--history"],
    [values.recipe !== undefined, "--recipe", values.onBusyFor !== undefined, "--on-busy-for"],
    [values.tick !== undefined, "--tick", values.shared, "-s"],
    [values.tick !== undefined, "--tick", values.limit !== undefined, "-N"],
    [values.tick !== undefined, "--tick", values.recipe !== undefined, "--recipe"],
    [values.tick !== undefined, "--tick", values.onBusyFor !== undefined, "--on-busy-for"],
  ] as const;
  for (const [one, oneFlag, other, otherFlag] of pairs) {
    if (one && other) throw new BatonError("USAGE", `${oneFlag} and ${otherFlag} cannot be used together`);
  }
  if (values.tick !== undefined) return;
  const [needless] = Object.entries<SettingTable[string]>(tickSettings).filter(([name]) => flags.has(name));
  if (needless !== undefined) throw new BatonError("USAGE", `${needless[1].flag} needs --tick`);
}

function waitMsOf(values: LockValues): number | undefined {
  const skips = values.skip || (values.tick !== undefined && values.overlap !== "wait");
  if (values.try || (skips && values.wait === undefined)) return 0;
  if (values.wait !== undefined) return values.wait === Infinity ? undefined : values.wait;
  return values.priority >= backgroundPriority ? values.backgroundWait : values.foregroundWait;
}
