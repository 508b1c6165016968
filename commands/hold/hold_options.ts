/** `baton hold`'s command line as data: a lock's, for a process that runs already. Pure, but for looking that process up. */
import process from "node:process";
import {
  hasProcessTable,
  otherNamespaceReason,
  processOfThread,
  readProcess,
} from "../../src/process/proc/process_table.ts";
import { commandOf, isShell, scriptAround, type ScriptProcess } from "../../src/process/hold/script_process.ts";
import { setting, type SettingTable } from "../../src/config/setting.ts";
import { integer } from "../../src/config/value_types.ts";
import { BatonError } from "../../src/errors.ts";
import type { Call } from "../command.ts";
import { type LockCommandOptions, lockCommandSettings, lockTermsOf } from "../lock/lock_options.ts";

/** What is about the start of a child, or its end, has no meaning here. */
const { foreground: _foreground, passAuth: _passAuth, minHold: _minHold, ...terms } = lockCommandSettings;

export const holdSettings = {
  pid: setting(integer("pid", { min: 1, max: 0x7fffffff }), {
    flag: "--pid",
    help: "the process whose life the lock is tied to; the parent of baton hold when left out, if that is a shell",
  }),
  ...terms,
  maxHold: { ...terms.maxHold, help: "stop the script so long after the grant" },
  killAfter: {
    ...terms.killAfter,
    help: "how long the script and what it started have, when baton stops them, before they are killed",
  },
  onDoubt: {
    ...terms.onDoubt,
    help:
      "what happens to the script and what it started while the servers are silent, before the lock is lost: run on, or be stopped",
  },
  signal: { ...terms.signal, help: "the signal that tells the script and what it started to stop" },
} satisfies SettingTable;

export interface HoldOptions extends LockCommandOptions {
  readonly script: ScriptProcess;
}

/** Throws USAGE for what does not fit together, CONFIG and REFUSED for a process that baton could not stop. */
export function holdOptionsOf(call: Call<typeof holdSettings>): HoldOptions {
  const example = 'as in: held=$(baton hold NAME --pid $$) || exit; eval "$held"';
  if (call.command !== null) {
    throw new BatonError(
      "USAGE",
      `baton hold runs no command: what follows it in the script is under the lock, ${example}`,
    );
  }
  const values = { ...call.values, foreground: false, passAuth: true, minHold: undefined };
  const script = scriptOf(call.values.pid);
  return { ...lockTermsOf({ ...call, values }, "hold", example), command: commandOf(script.pid), script };
}

function scriptOf(pid: number | undefined): ScriptProcess {
  if (!hasProcessTable()) {
    const why = otherNamespaceReason() ?? "it has to find the script's processes to stop them";
    throw new BatonError("CONFIG", `baton hold needs Linux with /proc: ${why}`);
  }
  const row = pid === undefined ? scriptAround(process.ppid) : readProcess(pid);
  if (pid === undefined && (row === null || !isShell(row.pid))) {
    const parent = commandOf(process.ppid)[0];
    throw new BatonError(
      "USAGE",
      `baton hold was started by "${parent}" (pid ${process.ppid}), which is no shell: say with --pid whose life the lock ` +
        "is tied to, as in --pid $$",
    );
  }
  if (row === null || row.dead) throw new BatonError("USAGE", `--pid ${pid}: there is no such process`);
  const owner = processOfThread(row.pid);
  if (owner !== row.pid) {
    throw new BatonError("USAGE", `--pid ${pid} is a thread of process ${owner}: name that one`);
  }
  if (row.isKernels) {
    const why = "is a thread of the kernel's, which nobody can stop: name the script's process, as in --pid $$";
    throw new BatonError("USAGE", `--pid ${pid} ${why}`);
  }
  if (row.pid === process.pid) throw new BatonError("USAGE", `--pid ${pid} is baton hold itself, which ends at once`);
  if (row.pid === 1) {
    throw new BatonError(
      "CONFIG",
      "The script is process 1, which nobody can kill from inside its container: run it under an init " +
        "(docker run --init), or under baton lock",
    );
  }
  if (!mayKill(row.pid)) {
    throw new BatonError(
      "REFUSED",
      `Process ${row.pid} is another user's: baton could not stop it when the lock is lost`,
    );
  }
  return { pid: row.pid, startTicks: row.startTicks };
}

/** kill(2) with no signal asks whether one could be sent. */
function mayKill(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "EPERM";
  }
}
