/**
 * The script's process that a hold is tied to: its identity, whether it is alive, its command line. Linux only: reads
 * /proc.
 */
import { basename } from "node:path";
import {
  probeProcess,
  processName,
  type ProcessRow,
  readProcess,
  readProcessArguments,
  readProgramPath,
} from "../../base/process/proc/process_table.ts";
import type { Clock } from "../../base/support/clock.ts";

export interface ScriptProcess {
  readonly pid: number;
  /** Clock ticks from boot to its start; identifies a process together with the pid. */
  readonly startTicks: number;
}

export function isScriptProcessAlive(script: ScriptProcess): boolean {
  const row = probeProcess(script.pid);
  if (row === "unknown") return true; // others would be given the lock while it may run
  return row !== null && !row.dead && row.startTicks === script.startTicks;
}

/** The script that has started `pid`, also from a subshell: `$(…)`, `(…)` and a pipe run in a copy of the shell. */
export function findEnclosingScript(pid: number): ProcessRow | null {
  let row = readProcess(pid);
  while (row?.isCopy) {
    const parent = readProcess(row.parent);
    if (row.image === null || parent?.image !== row.image) break;
    row = parent;
  }
  return row;
}

const shells = ["sh", "bash", "dash", "ash", "zsh", "ksh", "ksh93", "mksh", "lksh", "yash", "posh", "busybox"];

/** Returns false for a process whose program cannot be read. */
export function isShellProcess(pid: number): boolean {
  return shells.includes(basename(readProgramPath(pid)).replace(/^rbash$/, "bash"));
}

/**
 * The process's arguments from the program's name on. For a script that the kernel has passed to the interpreter of its
 * first line, the first one is the script itself.
 */
export function readScriptCommand(pid: number): [string, ...string[]] {
  const args = readProcessArguments(pid);
  // The kernel names a process by the file that was started, and keeps 15 bytes of it.
  const name = processName(pid);
  const start = args.findIndex((arg) => Buffer.from(basename(arg)).subarray(0, 15).toString() === name);
  const [first = `process ${pid}`, ...others] = args.slice(Math.max(0, start));
  return [first, ...others];
}

/** Milliseconds between checks, and so the longest delay of the release. To read a file of /proc costs microseconds. */
const checkIntervalMs = 100;

/** The interval after a stop signal. */
const fastCheckIntervalMs = 10;

export class ScriptWatch implements Disposable {
  readonly #end = Promise.withResolvers<void>();
  /** Resolves when the process has ended. */
  readonly ended = this.#end.promise;
  readonly #script: ScriptProcess;
  readonly #clock: Clock;
  readonly #onCheck: () => void;
  #intervalMs = checkIntervalMs;
  #cancel: () => void = () => {};

  /** `onCheck` is called with every check that finds the process alive. */
  constructor(script: ScriptProcess, clock: Clock, onCheck: () => void = () => {}) {
    this.#script = script;
    this.#clock = clock;
    this.#onCheck = onCheck;
    this.#check();
  }

  /** Checks more often from now on, because the process has been asked to end. */
  checkFaster(): void {
    this.#intervalMs = fastCheckIntervalMs;
    this.#cancel();
    this.#check();
  }

  [Symbol.dispose](): void {
    this.#cancel();
  }

  #check(): void {
    if (!isScriptProcessAlive(this.#script)) return this.#end.resolve();
    this.#cancel = this.#clock.startTimer(this.#intervalMs, () => this.#check());
    this.#onCheck();
  }
}
