/** `baton lock`'s command line as data: what may stand together, and what follows from it. Pure. */
import type { ConfigSources } from "../../src/config/resolve_settings.ts";
import { setting, type SettingTable, type SettingValues } from "../../src/config/setting.ts";
import { connectionSettings, lockSettings } from "../../src/config/settings.ts";
import { choice, duration, integer, text, toggle } from "../../src/config/value_types.ts";
import { BatonError } from "../../src/errors.ts";
import { interopRecipes } from "../../src/coordination/interop/interop_node_names.ts";
import { interopPath } from "../../src/coordination/interop/interop_path.ts";
import type { LockMode } from "../../src/process/lease.ts";
import { encodeLockName } from "../../src/coordination/lock/lock_name.ts";
import type { Call } from "../command.ts";
import { conflictExitCode, jobFlags } from "../job/job_flags.ts";

/** What only this command line can say. */
const flags = {
  try: setting(toggle(), {
    flag: "-n, --try",
    help: "do not wait: exit 75 when the lock is busy; 69 when no server answers within --connect-timeout",
    default: false,
  }),
  wait: setting(duration(), {
    flag: "-w, --wait",
    help: "how long to wait for the lock, connecting included; then exit 75, or 69 when no server answers",
  }),
  conflictExitCode,
  shared: setting(toggle(), { flag: "-s, --shared", help: "hold it together with other readers", default: false }),
  limit: setting(integer("count", { min: 1, max: 1_000_000 }), {
    flag: "-N, --limit",
    help: "a semaphore: this many may hold it at once",
  }),
  limitPolicy: setting(choice(["fail", "adopt", "set"]), {
    flag: "--limit-policy",
    help: "when the lock is known with another limit: exit 78, go by that one, or change it",
    default: "fail",
  }),
  recipe: setting(choice(interopRecipes), {
    flag: "--recipe",
    help: "take a lock that Curator's or kazoo's programs take too; NAME is the path of its node",
  }),
  reason: setting(text("text"), { flag: "--reason", help: "what the lock is for; others read it with baton who" }),
  maxHold: setting(duration({ minMs: 1 }), {
    flag: "--max-hold",
    help: "stop the child so long after the grant; then exit 124",
  }),
  minHold: setting(duration(), {
    flag: "--min-hold",
    help: "keep the lock for so long after the grant, even if the child ends earlier",
  }),
  ...jobFlags,
} satisfies SettingTable;

export const lockCommandSettings = { ...flags, ...lockSettings, ...connectionSettings } satisfies SettingTable;

type LockValues = SettingValues<typeof lockCommandSettings>;

export interface LockCommandOptions {
  /** Sorted, so that two calls with the same names cannot wait for each other; each once. */
  readonly names: readonly string[];
  readonly command: readonly [string, ...string[]];
  readonly mode: LockMode;
  /** How many may hold it; for a permit only. */
  readonly limit: number | undefined;
  /** Milliseconds; 0 for a try, undefined for as long as it takes. */
  readonly waitMs: number | undefined;
  readonly quiet: boolean;
  readonly verbose: boolean;
  readonly values: LockValues;
  readonly sources: ConfigSources;
  /** The process of a script that holds it, and runs already; this one when left out. */
  readonly script?: { readonly pid: number };
}

/** A call of a command that takes locks, with all that `baton lock` may be told. */
export type LockCall = Pick<Call<typeof lockCommandSettings>, "values" | "names" | "sources">;

/** When nothing is said. */
const foregroundPriority = 100;
/** From here on a call is in the background: passed in the queue, with a wait limit of its own. */
const backgroundPriority = 200;

/** Throws USAGE for what does not fit together. */
export function lockOptionsOf(call: Call<typeof lockCommandSettings>): LockCommandOptions {
  const example = "as in: baton lock NAME -- COMMAND";
  const terms = lockTermsOf(call, "lock", example);
  const [program, ...args] = call.command ?? [];
  if (program === undefined) {
    throw new BatonError("USAGE", `baton lock needs a command behind --, ${example}`);
  }
  return { ...terms, command: [program, ...args] };
}

/** Which locks, how and how long to wait. Throws USAGE for what does not fit together. */
export function lockTermsOf(call: LockCall, command: string, example: string): Omit<LockCommandOptions, "command"> {
  const { values, names, sources } = call;
  if (names.length === 0) throw new BatonError("USAGE", `baton ${command} needs the name of a lock, ${example}`);
  // Both refuse what cannot be one.
  names.forEach((name) => values.recipe === undefined ? encodeLockName(name) : interopPath(name));
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
    [values.shared, "-s", values.limit !== undefined, "-N"],
    [values.limitPolicy !== "fail", "--limit-policy", values.limit === undefined, "no -N"],
    [values.recipe !== undefined, "--recipe", values.limit !== undefined, "-N"],
    [values.recipe !== undefined, "--recipe", values.priority !== foregroundPriority, "--priority"],
    // In a file or a variable it is for the locks that it is for.
    [values.recipe !== undefined, "--recipe", flags.has("root"), "--root (such a lock is named by its whole path)"],
    [values.recipe === "curator", "--recipe curator", values.shared, "-s (that is --recipe curator-rw)"],
  ] as const;
  for (const [one, oneFlag, other, otherFlag] of pairs) {
    if (one && other) throw new BatonError("USAGE", `${oneFlag} and ${otherFlag} do not go together`);
  }
  const { minHold, maxHold } = values;
  if (minHold !== undefined && maxHold !== undefined && minHold > maxHold) {
    throw new BatonError("USAGE", `--min-hold (${minHold} ms) is longer than --max-hold (${maxHold} ms)`);
  }
}

function waitMsOf(values: LockValues): number | undefined {
  if (values.try) return 0;
  if (values.wait !== undefined) return values.wait;
  return values.priority >= backgroundPriority ? values.backgroundWait : values.foregroundWait;
}
