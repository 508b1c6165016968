/**
 * Kills all processes of a job. Repeats kill passes until two passes in a row find no living process. The guard is not
 * the parent of the command, so known_processes.ts decides which processes belong to the job.
 */
import { processSystem } from "../../support/own_process.ts";
import { ProcessKillRounds } from "../proc/stop_rounds.ts";
import { type FoundJobProcesses, JobProcessFinder } from "../proc/known_processes.ts";
import type { Libc } from "../libc.ts";
import {
  hasProcessTable,
  listProcesses,
  readProcess,
  readProcessAncestry,
  readProcessOrUnknown,
  readProgramPath,
  sendSignal,
} from "../proc/process_table.ts";
import type { GuardedChild, GuardedJob } from "./guard_state.ts";

/**
 * How long to wait for a command that baton has not reported, in milliseconds. baton may have died right after the
 * start, and the cookie is visible only once the command runs. The wait continues while a process may be about to
 * become the command.
 */
const unknownChildMs = 1000;

/** The time in milliseconds after which JobKiller gives up: the process waits in the kernel or is another user's. */
const killMsMax = 10_000;

export interface JobKillResult {
  /** The time on the boot clock at which the last process was dead, in milliseconds; Infinity if JobKiller gave up. */
  readonly clearedAtMs: number;
  /**
   * True if every process of the job is certainly dead, so that its lock may be given to another holder. False in
   * doubt:
   * - JobKiller gave up, because a process stayed alive, processes came and went too fast to be sure, or an unreported
   * command may still be about to start (execve) and to show its cookie;
   * - there is no process table (macOS; /proc of another PID namespace);
   * - /proc hides other users' processes (hidepid), and some may belong to the job;
   * - an orphan of another user, whose environment is unreadable, was started after the command (sudo, setuid).
   * The guard does not find a daemon that left group and session, cleared its environment and lost its parents before
   * (docs/limits.md). Such a daemon is no reason for doubt.
   */
  readonly isCertain: boolean;
}

export class JobKiller {
  readonly #job: GuardedJob;
  readonly #libc: Libc;
  readonly #startMs: number;
  readonly #known: JobProcessFinder;
  readonly #rounds: ProcessKillRounds;
  readonly #group: ProcessGroupWatch | null;
  readonly #onOver: () => void;
  #lastFound: FoundJobProcesses = { alive: [], isCertain: false, unreadable: [] };
  #emptyChecks = 0;
  #clearedAtMs: number;
  #giveUpAtMs: number;

  /**
   * `group` is null if baton did not report a command. Calls `onOver` once, after all kills, because it may write to a
   * disk that hangs.
   */
  constructor(
    cookie: string,
    job: GuardedJob,
    { libc, group, onOver = () => {} }: { libc: Libc; group: ProcessGroupWatch | null; onOver?: () => void },
  ) {
    this.#job = job;
    this.#group = group;
    this.#onOver = onOver;
    this.#libc = libc;
    this.#startMs = libc.bootTimeMs();
    this.#clearedAtMs = this.#startMs;
    this.#giveUpAtMs = this.#startMs + killMsMax;
    const mayBeScript = job.child?.ownGroup === false;
    this.#known = new JobProcessFinder(cookie, job.child, mayBeScript ? job.child.startTicks : null);
    for (const one of job.known) this.#known.add(one);
    const stoppable = {
      find: (onFound: (pid: number) => void) => this.#find(onFound),
      group: () => this.#groupNumber(),
    };
    this.#rounds = new ProcessKillRounds(stoppable, cookie);
  }

  /**
   * The pids of the processes that the last pass found alive. If /proc hides processes (hidepid), the negative number
   * of the group stands for them.
   */
  get alive(): readonly number[] {
    const { alive } = this.#lastFound;
    const group = alive.length === 0 ? this.#groupNumber() : null;
    return group !== null && isOthersOnly(group) && procHidesProcesses() ? [-group] : alive;
  }

  /**
   * Makes one pass, which kills every process that it finds. Returns null if another pass is needed some milliseconds
   * later. If `isPatient` is true, JobKiller does not give up while a pass still finds a process.
   */
  killOnce(isPatient = false): JobKillResult | null {
    const settledMs = this.#job.child === null ? this.#startMs + unknownChildMs : this.#startMs;
    const isLast = this.#emptyChecks > 0 && this.#libc.bootTimeMs() >= settledMs;
    // Checks before the pass: a process that becomes the command during the pass then shows its cookie in the pass.
    const wasBeingStarted = isLast && this.#job.child === null && isCommandBeingStarted();
    const isEmpty = hasProcessTable() ? this.#killAll() : !this.#killKnown();
    const nowMs = this.#libc.bootTimeMs();
    if (!isEmpty) this.#emptyChecks = 0;
    else if (this.#emptyChecks++ === 0) this.#clearedAtMs = nowMs;
    const isCleared = isLast && isEmpty && !wasBeingStarted;
    if (isPatient && this.alive.length > 0) this.#giveUpAtMs = nowMs + killMsMax;
    if (!isCleared && nowMs < this.#giveUpAtMs) return null;
    this.#rounds.close();
    this.#onOver();
    if (!isCleared) return { clearedAtMs: Infinity, isCertain: false };
    this.#group?.lose();
    return { clearedAtMs: this.#clearedAtMs, isCertain: !this.#isInDoubt() };
  }

  /** Kills all processes that it finds. Returns true if certainly no process was alive. */
  #killAll(): boolean {
    this.#rounds.kill();
    return this.alive.length === 0 && this.#lastFound.isCertain;
  }

  #find(onFound: (pid: number) => void): FoundJobProcesses {
    return this.#lastFound = this.#known.find(this.#groupNumber(), onFound);
  }

  #groupNumber(): number | null {
    const { child } = this.#job;
    return child !== null && this.#group?.isOurs() ? child.pid : null;
  }

  /**
   * Kills the process group or the command, on systems without a process table. Returns true if there was something to
   * kill.
   */
  #killKnown(): boolean {
    const { child } = this.#job;
    const group = this.#groupNumber();
    if (group !== null) return sendSignal(-group, "SIGKILL");
    return child !== null && !child.ownGroup && sendSignal(child.pid, "SIGKILL");
  }

  #isInDoubt(): boolean {
    const { child } = this.#job;
    if (!hasProcessTable() || procHidesProcesses()) return true;
    const sinceTicks = (child ?? readProcess(processSystem.pid))?.startTicks ?? 0;
    const takesOrphans = new Set([1, ...readProcessAncestry(processSystem.pid).map(({ parent }) => parent)]);
    return this.#lastFound.unreadable.some((pid) => {
      const row = readProcessOrUnknown(pid);
      if (row === "unknown") return true;
      return row !== null && !row.dead && row.startTicks >= sinceTicks && takesOrphans.has(row.parent);
    });
  }
}

/** Returns true if the group has members, and all of them belong to other users. */
function isOthersOnly(group: number): boolean {
  try {
    processSystem.kill(-group, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Returns the number that the kernel has given to a process or thread last; `before` if the system does not tell. */
function readLastPid(before: number): number {
  try {
    return Number(processSystem.readText("/proc/sys/kernel/ns_last_pid"));
  } catch {
    return before;
  }
}

/**
 * Tracks whether a process group still belongs to the command. The kernel may give the number of an empty group to an
 * unrelated program. A signal to the group would then kill that program, or what it has left behind.
 */
export class ProcessGroupWatch {
  readonly #child: GuardedChild;
  #isOurs: boolean;
  #lastPid: number;
  #mayBeReused = false;

  constructor(child: GuardedChild) {
    this.#child = child;
    this.#isOurs = child.ownGroup;
    this.#lastPid = child.pid;
  }

  /**
   * Returns true while the group is the command's; once false, it stays false. The caller must ask more often than the
   * kernel gives all numbers.
   */
  isOurs(): boolean {
    return this.#isOurs &&= this.#check();
  }

  /**
   * Records that no living process is left in the group. From now on, a process with the group's number is an unrelated
   * one.
   */
  lose(): void {
    this.#isOurs = false;
  }

  #check(): boolean {
    const { pid, startTicks } = this.#child;
    const before = this.#lastPid;
    const last = this.#lastPid = readLastPid(before);
    if (!sendSignal(-pid, 0)) return false;
    const row = readProcessOrUnknown(pid);
    if (row === "unknown") return true;
    if (row !== null) return startTicks === 0 || row.startTicks === startTicks;
    // The kernel gives numbers in ascending order, and then starts again. If it has passed this one, the group may have
    // become empty, and another group with its number may have lost its leader.
    this.#mayBeReused ||= before <= last ? before < pid && pid <= last : before < pid || pid <= last;
    // A signal does nothing to other users' processes, and they keep the lock if they are the command's.
    return !this.#mayBeReused || isOthersOnly(pid);
  }
}

/** CAP_SYS_PTRACE of capabilities(7). */
const sysPtrace = 19n;

/** The system calls that read /proc; tests replace them. They throw if the information is not available. */
export interface ProcSystemCalls {
  readonly pids: () => number[];
  readonly row: typeof readProcessOrUnknown;
  readonly program: (pid: number) => string;
  readonly mounts: () => string;
  /** Returns true if this process may read the processes of other users (CAP_SYS_PTRACE). */
  readonly mayReadAll: () => boolean;
}

const procProbes: ProcSystemCalls = {
  pids: listProcesses,
  row: readProcessOrUnknown,
  program: readProgramPath,
  mounts: () => processSystem.readText("/proc/self/mountinfo", "utf8"),
  mayReadAll() {
    const rights = /^CapEff:\s*([0-9a-f]+)$/m.exec(processSystem.readText("/proc/self/status"))?.[1] ?? "0";
    return (BigInt(`0x${rights}`) >> sysPtrace & 1n) === 1n;
  },
};

/**
 * Returns true if baton may have been killed between fork and exec. At that moment, the process that will become the
 * command has no cookie: it is a copy of baton, and runs the same program as the guard.
 */
export function isCommandBeingStarted(probes = procProbes): boolean {
  try {
    return probes.pids().some((pid) => {
      const row = probes.row(pid);
      if (row === "unknown") return true;
      return row !== null && row.isCopy && !row.dead && probes.program(pid) === probes.program(processSystem.pid);
    });
  } catch {
    return true;
  }
}

/**
 * Returns true if /proc shows only processes of this user (hidepid of proc(5)). Processes of the job that belong to
 * other users are then invisible.
 */
export function procHidesProcesses(probes = procProbes): boolean {
  try {
    const procs = probes.mounts().split("\n").filter((line) => line.split(" ")[4] === "/proc");
    return /\bhidepid=(?!0|off)/.test(procs.at(-1) ?? "") && !probes.mayReadAll();
  } catch {
    return true;
  }
}
