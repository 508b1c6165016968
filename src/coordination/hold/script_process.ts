/** Finds and watches the process of a script that holds a lock. Linux only, because it reads /proc. */
import { basename } from "node:path";
import {
  isSameProcessAlive,
  type ProcessIdentity,
  processName,
  type ProcessRow,
  readProcess,
  readProcessArguments,
  readProgramPath,
} from "../../base/process/proc/process_table.ts";
import type { Clock } from "../../base/support/clock.ts";

/**
 * Returns the script that has started `pid`, even if a subshell of the script started it. `$(…)`, `(…)` and pipes run
 * in a copy of the shell.
 */
export function findEnclosingScript(pid: number): ProcessRow | null {
  let row = readProcess(pid);
  while (row?.isCopy && runsSameProgram(row.pid, row.parent)) row = readProcess(row.parent);
  return row;
}

/** Returns true if two processes run the same program with the same arguments; false if they cannot be read. */
function runsSameProgram(one: number, other: number): boolean {
  const program = readProgramPath(one);
  return program !== "" && program === readProgramPath(other) &&
    readProcessArguments(one).join("\0") === readProcessArguments(other).join("\0");
}

const shells = ["sh", "bash", "dash", "ash", "zsh", "ksh", "ksh93", "mksh", "lksh", "yash", "posh", "busybox"];

/** Returns true if the process is a shell; false if its program cannot be read. */
export function isShellProcess(pid: number): boolean {
  return shells.includes(basename(readProgramPath(pid)).replace(/^rbash$/, "bash"));
}

/**
 * Returns the command line of a process, without an interpreter. If the kernel has started the interpreter in a
 * script's first line, the first word is the script; otherwise it is the program.
 */
export function readScriptCommand(pid: number): [string, ...string[]] {
  const args = readProcessArguments(pid);
  // The kernel names a process after the file that was started, and keeps 15 bytes of the name.
  const name = processName(pid);
  const start = args.findIndex((arg) => Buffer.from(basename(arg)).subarray(0, 15).toString() === name);
  const [first = `process ${pid}`, ...others] = args.slice(Math.max(0, start));
  return [first, ...others];
}

/**
 * The time between checks in milliseconds. It is also the longest delay of the release. Reading a file of /proc takes
 * microseconds.
 */
const checkIntervalMs = 100;

/** The time between checks after a stop signal, in milliseconds. */
const fastCheckIntervalMs = 10;

/** How long after the death of the script its end is reported, in milliseconds. */
const settleMs = 10;

export class ScriptWatch implements Disposable {
  readonly #end = Promise.withResolvers<void>();
  /**
   * Resolves a moment after the process has ended. By then, the last programs of the process have the environment by
   * which baton finds them.
   */
  readonly ended = this.#end.promise;
  readonly #script: ProcessIdentity;
  readonly #clock: Clock;
  readonly #onCheck: () => void;
  #intervalMs = checkIntervalMs;
  #isDead = false;
  #cancel: () => void = () => {};

  /** Calls `onCheck` at every check that finds the process alive. */
  constructor(script: ProcessIdentity, clock: Clock, onCheck: () => void = () => {}) {
    this.#script = script;
    this.#clock = clock;
    this.#onCheck = onCheck;
    this.#check();
  }

  /** Checks more often from now on, because the process has been asked to end. */
  checkFaster(): void {
    if (this.#isDead) return;
    this.#intervalMs = fastCheckIntervalMs;
    this.#cancel();
    this.#check();
  }

  [Symbol.dispose](): void {
    this.#cancel();
  }

  #check(): void {
    this.#isDead = !isSameProcessAlive(this.#script);
    if (this.#isDead) {
      this.#cancel = this.#clock.startTimer(settleMs, () => this.#end.resolve());
      return;
    }
    this.#cancel = this.#clock.startTimer(this.#intervalMs, () => this.#check());
    this.#onCheck();
  }
}
