/**
 * The processes of a script that holds a lock: finds them, signals them, reports which are alive. baton is not their parent, and
 * the script shares its process group with other programs (a terminal's, cron's), so that no group is signalled. Processes are
 * found by descent from the script, by the mark in their environment, and, once the script has ended, as copies of it.
 */
import { sleep } from "../../support/deadline.ts";
import { CommandProcesses } from "../proc/job_processes.ts";
import { KnownProcesses } from "../proc/known_processes.ts";
import { readProcess, sendSignal } from "../proc/process_table.ts";
import { type CopiesOfScript, ForkedSubshells } from "../proc/forked_subshells.ts";
import { isGuardProcess } from "../guard/guard.ts";
import type { SuperviseOptions } from "../supervise/supervise_child.ts";
import type { ScriptProcess } from "./script_process.ts";

export interface ScriptProcessesOptions {
  readonly script: ScriptProcess;
  readonly cookie: string;
  /** Clock ticks from boot to the grant. Processes started before are not under the lock, and may outlive a script that simply ends. */
  readonly sinceTicks: number;
  /** Null if the script had ended before the grant. */
  readonly copies: CopiesOfScript | null;
}

export class ScriptProcesses extends CommandProcesses {
  readonly #script: ScriptProcess;
  readonly #sinceTicks: number;
  readonly #known: KnownProcesses;
  readonly #copies: CopiesOfScript | null;
  #isStopped = false;
  #isReleased = false;
  /** Called when the script is told to end. */
  onStop: () => void = () => {};

  constructor({ script, cookie, sinceTicks, copies }: ScriptProcessesOptions) {
    super({ pid: script.pid, ownGroup: false, cookie });
    this.#script = script;
    this.#sinceTicks = sinceTicks;
    this.#known = new KnownProcesses(cookie, script);
    this.#copies = copies;
  }

  /** The lock is being released: no process belongs to it any longer. */
  release(): void {
    this.#isReleased = true;
  }

  override commandEnded(): void {
    super.commandEnded();
    if (this.#copies !== null) this.#known.addCopies(new ForkedSubshells(this.#copies));
  }

  /** Passes no signals on: users send them to the script. */
  override signalCommand(): void {}

  override signalAll(signal: NodeJS.Signals): void {
    if (signal !== "SIGSTOP" && signal !== "SIGCONT" && !this.#isReleased) {
      this.#isStopped ||= !this.hasEnded;
      this.onStop();
    }
    super.signalAll(signal);
  }

  /** Remembers the descendants, so that those that lose their parents later are known. None of them is baton's child to reap. */
  reapOrphans(): void {
    this.#known.rememberDescendants();
  }

  /**
   * The running processes that the script has started under the lock. Left out: the script, `requester` and its ancestors
   * (subshells, a baton lock with its guard), and processes started after `requester` (the other end of its pipe).
   */
  startedUnderLock(requester: ScriptProcess): number[] {
    const ancestors = new Set<number>([this.#script.pid]);
    for (let row = readProcess(requester.pid); row !== null && !ancestors.has(row.pid); row = readProcess(row.parent)) {
      ancestors.add(row.pid);
    }
    return this.alive().filter((pid) => {
      const row = readProcess(pid);
      if (row === null || ancestors.has(pid) || (ancestors.has(row.parent) && isGuardProcess(pid))) return false;
      return row.startTicks >= this.#sinceTicks && startedBefore(row, requester);
    });
  }

  /** The processes that have to be dead before the lock can be granted again. None after `release()`. */
  protected find(): { alive: readonly number[]; isCertain: boolean } {
    if (this.#isReleased) return { alive: [], isCertain: true };
    const isUnderLock = (pid: number) => (readProcess(pid)?.startTicks ?? 0) >= this.#sinceTicks;
    const { alive, isCertain } = this.#known.findCertain(
      null,
      !this.hasEnded || this.#isStopped ? () => true : isUnderLock,
    );
    return { alive, isCertain: isCertain || alive.length > 0 };
  }
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
 * Sends the stop signal to each process that `find` returns, once, and SIGKILL after `killAfterMs` to those that are left.
 * Resolves with the processes that could not be stopped: none, as a rule.
 */
export async function stopProcesses(
  find: () => number[],
  { clock, killAfterMs, stopSignal }: Pick<SuperviseOptions, "clock" | "killAfterMs" | "stopSignal">,
): Promise<number[]> {
  const killAtMs = clock.now() + killAfterMs;
  const signalled = new Set<number>();
  for (;;) {
    const left = find();
    const nowMs = clock.now();
    if (left.length === 0 || nowMs >= killAtMs + killGraceMs) return left;
    for (const pid of left) {
      if (nowMs >= killAtMs) sendSignal(pid, "SIGKILL");
      else if (!signalled.has(pid)) sendSignal(pid, stopSignal);
      if (!signalled.has(pid)) sendSignal(pid, "SIGCONT"); // a stopped process reacts to no other signal
      signalled.add(pid);
    }
    await sleep(clock, stopCheckIntervalMs);
  }
}
