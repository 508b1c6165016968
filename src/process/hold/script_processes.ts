/**
 * The processes of a script that holds a lock: finds them, signals them, tells which are alive. Nobody here is their parent,
 * and the script's process group is others' too (a terminal's, cron's), so that no group is signalled: it goes by descent
 * from the script, by the cookie in the environment, and, once the script is gone, by being a copy of it.
 */
import { type JobProcesses, sendToJob } from "../proc/job_processes.ts";
import { KnownProcesses, type KnownSnapshot } from "../proc/known_processes.ts";
import { KillCgroup } from "../proc/kill_cgroup.ts";
import { readProcess } from "../proc/process_table.ts";
import { ForkedSubshells } from "../proc/forked_subshells.ts";
import { StopRounds } from "../proc/stop_rounds.ts";
import { isGuardProcess } from "../guard/guard_process.ts";
import type { ScriptProcess } from "./script_process.ts";

export interface ScriptProcessesOptions {
  readonly script: ScriptProcess;
  readonly cookie: string;
  /** Clock ticks from boot to the grant: what was started before is not under the lock, and outlives a script that just ends. */
  readonly sinceTicks: number;
}

type RunProcesses = Pick<JobProcesses, "alive" | "signalAll" | "signalCommand" | "leaderEnded" | "reapOrphans">;

export class ScriptProcesses implements RunProcesses {
  readonly #script: ScriptProcess;
  readonly #sinceTicks: number;
  readonly #known: KnownProcesses;
  readonly #copies: ForkedSubshells;
  readonly #rounds: StopRounds;
  #isUndecided = false;
  #leaderEnded = false;
  #isStopped = false;
  #isLetGo = false;
  #onStop: () => void = () => {};

  constructor({ script, cookie, sinceTicks }: ScriptProcessesOptions) {
    this.#script = script;
    this.#sinceTicks = sinceTicks;
    this.#known = new KnownProcesses(cookie, script);
    this.#copies = new ForkedSubshells(script.pid, sinceTicks);
    const find = () => ({ alive: this.alive(), isCertain: !this.#isUndecided });
    this.#rounds = new StopRounds({ find, group: () => null }, new KillCgroup(cookie));
  }

  /** Calls it when the script is told to end. */
  set onStop(call: () => void) {
    this.#onStop = call;
  }

  /** The lock is given back: nothing is this job's any more. */
  letGo(): void {
    this.#isLetGo = true;
  }

  leaderEnded(): void {
    this.#leaderEnded = true;
    this.#known.addCopies(this.#copies);
  }

  /** Nobody's signals are passed on: whoever means the script sends them to the script. */
  signalCommand(): void {}

  signalAll(signal: NodeJS.Signals): void {
    if (signal !== "SIGSTOP" && signal !== "SIGCONT" && !this.#isLetGo) {
      this.#isStopped ||= !this.#leaderEnded;
      this.#onStop();
    }
    if (signal === "SIGKILL") return this.#rounds.kill();
    if (signal === "SIGSTOP") return this.#rounds.freeze();
    if (signal === "SIGCONT") this.#rounds.thawed();
    const pids = this.alive();
    sendToJob({ pid: this.#script.pid, ownGroup: false, leaderEnded: this.#leaderEnded, pids }, signal);
  }

  /** What lives and has to be dead before others can get the lock. Empty once it is let go. */
  alive(): readonly number[] {
    if (this.#isLetGo) return [];
    const { alive, isCertain } = this.#find();
    this.#isUndecided = alive.length === 0 && !isCertain;
    if (alive.length === 0 && isCertain) this.#rounds.close();
    return alive;
  }

  /** Whether, as of the last `alive()`, something may live although nothing was found. */
  isUndecided(): boolean {
    return this.#isUndecided && !this.#isLetGo;
  }

  /** So that what loses its parents later is known by then. There are no children here whose status would have to be taken. */
  reapOrphans(): void {
    this.#known.rememberDescendants();
  }

  /**
   * What was started under the lock and runs, while the script itself goes on. `asking`, the process that wants to know, is
   * none of it, nor what it runs in (subshells, a baton lock with its guard), nor what was started after it (the other end of
   * its pipe).
   */
  startedUnder(asking: ScriptProcess): number[] {
    const around = new Set<number>([this.#script.pid]);
    for (let row = readProcess(asking.pid); row !== null && !around.has(row.pid); row = readProcess(row.parent)) {
      around.add(row.pid);
    }
    return this.alive().filter((pid) => {
      const row = readProcess(pid);
      if (row === null || around.has(pid) || (around.has(row.parent) && isGuardProcess(pid))) return false;
      return row.startTicks >= this.#sinceTicks && isBefore(row, asking);
    });
  }

  #find(): KnownSnapshot {
    const isMeant = (pid: number) => (readProcess(pid)?.startTicks ?? 0) >= this.#sinceTicks;
    return this.#known.findCertain(null, !this.#leaderEnded || this.#isStopped ? () => true : isMeant);
  }
}

/** Of two in the same tick, of 10 ms, the one with the lower number, as the kernel counts them up. */
function isBefore(one: ScriptProcess, other: ScriptProcess): boolean {
  return one.startTicks === other.startTicks ? one.pid < other.pid : one.startTicks < other.startTicks;
}
