/**
 * The guard's blow: kills everything of a job until two looks in a row find nothing alive. The guard is no parent of
 * the job: what belongs to it is for known_processes.ts to say.
 */
import process from "node:process";
import { KillCgroup } from "../proc/kill_cgroup.ts";
import { type KnownLook, KnownProcesses } from "../proc/known_processes.ts";
import type { Libc } from "../libc.ts";
import { hasProcessTable, lookAtProcess, readProcess } from "../proc/process_table.ts";
import { ancestors, type ShellCopies } from "../proc/forked_subshells.ts";
import { StopRounds } from "../proc/stop_rounds.ts";
import type { GroupWatch } from "./group_watch.ts";
import type { GuardedJob } from "./guard_state.ts";
import { hidesProcesses, isBeingStarted } from "./unseen_processes.ts";

/** baton may have been killed between starting the command and saying so: the command shows its cookie only once it runs. */
const unknownChildMs = 1000;

/** A process that cannot be killed (in the kernel, or another user's) is looked after this long. */
const strikeMsMax = 10_000;

/** How a strike ended. */
export interface StrikeEnd {
  /** The boot time at which nothing was left; Infinity if it had to give up. */
  readonly clearedAtMs: number;
  /**
   * Every process of the job is gone, so that its lock may be given to others. False in doubt, which is when
   * - the strike gave up: something was alive to the end, or processes came and went too fast to be judged;
   * - there is no process table to look into (macOS; /proc of another PID namespace);
   * - no command was told of, and a process may be about to become it (execve), and to show its cookie;
   * - /proc shows this user's own processes only (hidepid), and others' may be the job's;
   * - another user's process, whose environment cannot be read, was started after the command and is an orphan now: it may be
   *   the job's (sudo, setuid).
   * What docs/limits.md says remains: a daemon that left group and session, cleared its environment and lost its parents
   * before this strike is not known to the guard, and so no reason to doubt.
   */
  readonly isCertain: boolean;
}

/** The blow at one job, look by look. */
export class Strike {
  readonly #job: GuardedJob;
  readonly #libc: Libc;
  readonly #startMs: number;
  readonly #known: KnownProcesses;
  readonly #rounds: StopRounds;
  readonly #group: GroupWatch | null;
  #last: KnownLook = { alive: [], isCertain: false, unreadable: [] };
  #emptyLooks = 0;
  #wasBeingStarted = false;
  #clearedAtMs: number;

  /** `copies`: of a command that may leave some. `group`: null when no command was told of. */
  constructor(
    cookie: string,
    job: GuardedJob,
    { libc, copies, group }: { libc: Libc; copies: ShellCopies | undefined; group: GroupWatch | null },
  ) {
    this.#job = job;
    this.#group = group;
    this.#libc = libc;
    this.#startMs = libc.bootTimeMs();
    this.#clearedAtMs = this.#startMs;
    this.#known = new KnownProcesses(cookie, job.child, copies ?? null);
    this.#rounds = new StopRounds(
      { find: (onFound) => this.#find(onFound), group: () => this.#groupNumber() },
      new KillCgroup(cookie),
    );
  }

  /** Kills what is there. Null as long as another look is wanted, some milliseconds later. */
  look(): StrikeEnd | null {
    const settledMs = this.#job.child === null ? this.#startMs + unknownChildMs : this.#startMs;
    const isLast = this.#emptyLooks > 0 && this.#libc.bootTimeMs() >= settledMs;
    // Before the look: what has become the command by then shows its cookie in it.
    this.#wasBeingStarted = isLast && this.#job.child === null && isBeingStarted();
    const isEmpty = hasProcessTable() ? this.#killAll() : !this.#killKnown();
    const nowMs = this.#libc.bootTimeMs();
    if (!isEmpty) this.#emptyLooks = 0;
    else if (this.#emptyLooks++ === 0) this.#clearedAtMs = nowMs;
    const isCleared = isLast && isEmpty;
    if (!isCleared && nowMs < this.#startMs + strikeMsMax) return null;
    this.#rounds.close();
    if (!isCleared) return { clearedAtMs: Infinity, isCertain: false };
    return { clearedAtMs: this.#clearedAtMs, isCertain: !this.#hasDoubt() };
  }

  /** True if nothing was alive, and that for certain. */
  #killAll(): boolean {
    this.#rounds.kill();
    return this.#last.alive.length === 0 && this.#last.isCertain;
  }

  #find(onFound: (pid: number) => void): KnownLook {
    return this.#last = this.#known.find(this.#groupNumber(), onFound);
  }

  #groupNumber(): number | null {
    const { child } = this.#job;
    return child !== null && this.#group?.isOurs() ? child.pid : null;
  }

  /** Without a process table: the group, or the command. True if there was something to kill. */
  #killKnown(): boolean {
    const { child } = this.#job;
    const group = this.#groupNumber();
    if (group !== null) return kill(-group);
    return child !== null && !child.ownGroup && kill(child.pid);
  }

  #hasDoubt(): boolean {
    const { child } = this.#job;
    if (!hasProcessTable() || hidesProcesses() || this.#wasBeingStarted) return true;
    // The guard was there before any command that it was not told of.
    const sinceTicks = (child ?? readProcess(process.pid))?.startTicks ?? 0;
    const takesOrphans = ancestors();
    return this.#last.unreadable.some((pid) => {
      const row = lookAtProcess(pid);
      if (row === "unknown") return true;
      return row !== null && !row.dead && row.startTicks >= sinceTicks && takesOrphans.has(row.parent);
    });
  }
}

function kill(pid: number): boolean {
  try {
    process.kill(pid, "SIGKILL");
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
