/**
 * The processes of a script that holds a lock: finds them, signals them, reports which are alive. baton is not their
 * parent, and the script shares its process group with other programs (a terminal's, cron's), so that no group is
 * signalled. Processes are found by descent from the script, by the mark in their environment, and as copies of the
 * script whose parents have ended.
 */
import { sleep } from "../../base/support/deadline.ts";
import { CommandProcesses } from "../../base/process/proc/job_processes.ts";
import { KnownProcesses } from "../../base/process/proc/known_processes.ts";
import { type ProcessRow, readProcess, sendSignal } from "../../base/process/proc/process_table.ts";
import type { CopiesOfScript } from "../../base/process/proc/forked_subshells.ts";
import { isGuardProcess } from "../../base/process/guard/guard.ts";
import type { SuperviseOptions } from "../../base/process/supervise/supervise_child.ts";
import type { ScriptProcess } from "./script_process.ts";

export interface ScriptProcessesOptions {
  readonly script: ScriptProcess;
  readonly cookie: string;
  readonly copies: CopiesOfScript;
}

export class ScriptProcesses extends CommandProcesses {
  readonly #script: ScriptProcess;
  readonly #known: KnownProcesses;
  #isStopped = false;
  #isReleased = false;
  /** Called when the script is told to end. */
  onStop: () => void = () => {};

  constructor({ script, cookie, copies }: ScriptProcessesOptions) {
    super({ pid: script.pid, ownGroup: false, cookie });
    this.#script = script;
    this.#known = new KnownProcesses(cookie, script, copies);
  }

  /** The lock is being released: no process belongs to it any longer. */
  release(): void {
    this.#isReleased = true;
  }

  /** Passes no signals on: users send them to the script. */
  override signalCommand(): void {}

  override signalAll(signal: NodeJS.Signals, options?: { readonly isRepeated?: boolean }): void {
    if (signal !== "SIGSTOP" && signal !== "SIGCONT" && !this.#isReleased) {
      this.#isStopped ||= !this.hasEnded;
      this.onStop();
    }
    super.signalAll(signal, options);
  }

  /**
   * Remembers the descendants, so that those that lose their parents later are known. None of them is baton's child to
   * reap.
   */
  reapOrphans(): readonly number[] {
    this.#known.rememberDescendants();
    return this.#isReleased ? [] : this.#known.orphans();
  }

  /**
   * Finds the running processes that the script has started under the lock. Left out: the script, `requester` and its
   * ancestors (subshells, a baton lock with its guard), and what these have started since (the other end of its pipe).
   * Null: the requester has ended, so that its ancestors are not known.
   */
  finderFor(requester: ScriptProcess): (() => FoundProcesses) | null {
    const ancestors = new Map([[this.#script.pid, this.#script.startTicks]]);
    let row = readProcess(requester.pid);
    if (row?.startTicks !== requester.startTicks) return null;
    for (; row !== null && !ancestors.has(row.pid); row = readProcess(row.parent)) {
      ancestors.set(row.pid, row.startTicks);
    }
    const isAncestor = ({ pid, startTicks }: ScriptProcess) => ancestors.get(pid) === startTicks;
    const isOtherEnd = (found: ProcessRow): boolean => {
      for (let at: ProcessRow | null = found; at !== null; at = readProcess(at.parent)) {
        if (isAncestor(at)) return true;
        if (startedBefore(at, requester)) return false;
      }
      return false;
    };
    const isWanted = (pid: number): boolean => {
      const found = readProcess(pid);
      if (found === null || isAncestor(found) || this.#known.isOlder(pid)) return false;
      return !(ancestors.has(found.parent) && isGuardProcess(pid)) && !isOtherEnd(found);
    };
    return () => this.#known.findCertain(null, isWanted);
  }

  /** The processes that have to be dead before the lock can be granted again. None after `release()`. */
  protected find(): FoundProcesses {
    if (this.#isReleased) return { alive: [], isCertain: true };
    const isWanted = (pid: number) => !this.hasEnded || this.#isStopped || !this.#known.isOlder(pid);
    const { alive, isCertain } = this.#known.findCertain(null, isWanted);
    return { alive, isCertain: isCertain || alive.length > 0 };
  }
}

interface FoundProcesses {
  readonly alive: readonly number[];
  /** If `alive` is empty, no process is alive. */
  readonly isCertain: boolean;
}

/** Compares pids within a tick of 10 ms: the kernel counts them up. */
function startedBefore(one: ScriptProcess, other: ScriptProcess): boolean {
  return one.startTicks === other.startTicks ? one.pid < other.pid : one.startTicks < other.startTicks;
}

/** Milliseconds between checks of processes that were told to stop. */
const stopCheckIntervalMs = 20;

/** How long processes have to end after SIGKILL. */
const killGraceMs = 1000;

/**
 * Sends the stop signal to each process that `find` returns, once, and SIGKILL after `killAfterMs` to those that are
 * left. Resolves with the processes that could not be stopped: none, as a rule.
 */
export async function stopProcesses(
  find: () => FoundProcesses,
  { clock, killAfterMs, stopSignal }: Pick<SuperviseOptions, "clock" | "killAfterMs" | "stopSignal">,
): Promise<readonly number[]> {
  const killAtMs = clock.now() + killAfterMs;
  const signalled = new Set<number>();
  for (;;) {
    const { alive: left, isCertain } = find();
    const nowMs = clock.now();
    if ((left.length === 0 && isCertain) || nowMs >= killAtMs + killGraceMs) return left;
    for (const pid of left) {
      if (nowMs >= killAtMs) sendSignal(pid, "SIGKILL");
      else if (!signalled.has(pid)) sendSignal(pid, stopSignal);
      if (!signalled.has(pid)) sendSignal(pid, "SIGCONT"); // a stopped process reacts to no other signal
      signalled.add(pid);
    }
    await sleep(clock, stopCheckIntervalMs);
  }
}
