/**
 * The options of `baton hold`: the options of `baton lock` that make sense for a running process. Also converts them to
 * JSON and back, for the holder process.
 */
import process from "node:process";
import {
  hasProcessTable,
  type ProcessIdentity,
  processOfThread,
  readProcess,
  whyProcessTableIsUnusable,
} from "../../../src/base/process/proc/process_table.ts";
import {
  findEnclosingScript,
  isShellProcess,
  readScriptCommand,
} from "../../../src/coordination/hold/script_process.ts";
import { flagSetting, type SettingTable } from "../../../src/base/config/setting.ts";
import { resolveSettings } from "../../../src/base/config/resolve_settings.ts";
import { integerType } from "../../../src/base/config/value_types.ts";
import { BatonError } from "../../../src/base/errors.ts";
import type { CommandCall } from "../../command.ts";
import { type LockCommandOptions, lockCommandSettings, readCommonLockOptions, tickSettings } from "../lock_options.ts";

type LockSettings = typeof lockCommandSettings;

/** Settings for the start or the end of a command. They have no meaning for a script that is already running. */
const noMeaningForScripts = [
  "foreground",
  "passAuth",
  "shellLine",
  "leaveRunning",
  "onBusyFor",
  "onFailure",
  "skip", // exit code 0 means that the lock is held
  ...Object.keys(tickSettings) as (keyof typeof tickSettings)[], // no script is started for a tick
] as const satisfies readonly (keyof LockSettings)[];
type CommandSetting = typeof noMeaningForScripts[number];

const isForCommand = ([name]: readonly [string, unknown]) => noMeaningForScripts.includes(name as CommandSetting);
const entries = Object.entries(lockCommandSettings);
const commandSettings = Object.fromEntries(entries.filter(isForCommand)) as Pick<LockSettings, CommandSetting>;
const terms = Object.fromEntries(entries.filter((entry) => !isForCommand(entry))) as Omit<LockSettings, CommandSetting>;

export const holdSettings = {
  pid: flagSetting("--pid", integerType("pid", { min: 1, max: 0x7fffffff }), {
    help: "release the lock when this process has ended (default: the parent of baton hold, if that is a shell)",
  }),
  ...terms,
  maxHold: { ...terms.maxHold, help: "stop the script if it holds the lock longer than this" },
  killAfter: {
    ...terms.killAfter,
    help: "time between the stop signal to the script and the processes that it started, and SIGKILL",
  },
  onDoubt: {
    ...terms.onDoubt,
    help:
      "while no server responds and the lock is not lost yet: let the script and the processes that it started run " +
      "(ignore), or suspend them (freeze)",
  },
  signal: { ...terms.signal, help: "the signal that asks the script and the processes that it started to stop" },
} satisfies SettingTable;

export interface HoldOptions extends LockCommandOptions {
  readonly script: ProcessIdentity;
}

/**
 * Returns the options. Throws USAGE for contradictory options. Throws CONFIG or REFUSED for a script that baton could
 * not stop.
 */
export function readHoldOptions(call: CommandCall<typeof holdSettings>): HoldOptions {
  const example = 'as in: held=$(baton hold NAME --pid $$) || exit; eval "$held"';
  if (call.command !== null) {
    throw new BatonError(
      "USAGE",
      `baton hold runs no command: the lines of the script after it run under the lock, ${example}`,
    );
  }
  const defaults = resolveSettings(commandSettings, { flags: new Map(), env: {}, files: [] });
  // The script keeps its environment, including credentials.
  const values = { ...defaults, ...call.values, passAuth: true };
  const script = scriptOf(call.values.pid);
  return {
    ...readCommonLockOptions({ ...call, values }, "hold", example),
    command: readScriptCommand(script.pid),
    script,
  };
}

function scriptOf(pid: number | undefined): ProcessIdentity {
  if (!hasProcessTable()) {
    const why = whyProcessTableIsUnusable() ?? "it finds the script's processes there, to stop them";
    throw new BatonError("CONFIG", `baton hold needs Linux with /proc: ${why}`);
  }
  const row = pid === undefined ? findEnclosingScript(process.ppid) : readProcess(pid);
  if (pid === undefined && (row === null || !isShellProcess(row.pid))) {
    const parent = readScriptCommand(process.ppid)[0];
    throw new BatonError(
      "USAGE",
      `baton hold was started by "${parent}" (pid ${process.ppid}), which is not a shell like sh: ` +
        "name the process that holds the lock with --pid, as in --pid $$" +
        (parent === "fish" ? "; in fish: baton hold NAME --pid $fish_pid | source" : ""),
    );
  }
  if (row === null || row.dead) throw new BatonError("USAGE", `--pid ${pid}: no such process`);
  const owner = processOfThread(row.pid);
  if (owner !== row.pid) {
    throw new BatonError("USAGE", `--pid ${pid} is a thread of process ${owner}: use --pid ${owner}`);
  }
  if (row.isKernelThread) {
    const why = "is a kernel thread, which cannot be stopped: use the script's process, as in --pid $$";
    throw new BatonError("USAGE", `--pid ${pid} ${why}`);
  }
  if (row.pid === process.pid) {
    throw new BatonError(
      "USAGE",
      `--pid ${pid} is baton hold itself, which ends when it has the lock; for a subshell, write me=$BASHPID before ` +
        "it, and --pid $me",
    );
  }
  if (row.pid === 1) {
    throw new BatonError(
      "CONFIG",
      "The script is process 1, which cannot be killed from inside its container: run it under an init " +
        "(docker run --init), or under baton lock",
    );
  }
  if (!mayKill(row.pid)) {
    throw new BatonError(
      "REFUSED",
      `Process ${row.pid} belongs to another user: baton could not stop it when the lock is lost`,
    );
  }
  return { pid: row.pid, startTicks: row.startTicks };
}

/** Returns true if this process may send signals to another process. Signal 0 only checks the permission. */
function mayKill(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "EPERM";
  }
}

export interface PackedLockOptions extends Omit<LockCommandOptions, "sources"> {
  readonly flags: readonly (readonly [string, string])[];
  readonly files: readonly PackedFile[];
}

interface PackedFile {
  readonly path: string;
  readonly values: readonly (readonly [key: string, value: string, line: number | null])[];
}

export function packLockOptions({ sources, ...options }: LockCommandOptions): PackedLockOptions {
  return {
    ...options,
    flags: [...sources.flags],
    files: sources.files.map(({ path, values, lineOf }) => ({
      path,
      values: [...values].map(([key, value]) => [key, value, lineOf(key)] as const),
    })),
  };
}

export function unpackLockOptions(
  { flags, files, ...options }: PackedLockOptions,
  env: Readonly<Record<string, string | undefined>>,
): LockCommandOptions {
  const sources = {
    env,
    flags: new Map(flags),
    files: files.map(({ path, values }) => ({
      path,
      values: new Map(values.map(([key, value]) => [key, value])),
      lineOf: (key: string) => values.find(([name]) => name === key)?.[2] ?? null,
    })),
  };
  return { ...options, sources };
}
