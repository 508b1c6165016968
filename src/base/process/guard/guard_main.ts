/**
 * The guard is a second process that acts when baton is dead or stopped, so that no command runs without its lock. It
 * waits for lines on a pipe from baton. If the pipe ends without a "done", it kills all jobs. If the deadline of a job
 * passes without a renewal, it kills that job. It never asks a job to stop first. When baton and all processes of all
 * jobs are dead, it ends baton's session, so that the lock is free early.
 *
 * The guard blocks in poll(2) and runs no event loop, which saves memory and avoids delays. It loads all its code
 * before it reports "ready", because the disk may hang later.
 */
import { openSync, writeFileSync, writeSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { isSameProcessAlive, readProcess } from "../proc/process_table.ts";
import { describeUnstoppableProcesses } from "../proc/unstoppable.ts";
import { type Libc, loadLibc } from "../libc.ts";
import { JobKiller, type JobKillResult, ProcessGroupWatch } from "./kill_job.ts";
import {
  chooseGuardSessionToEnd,
  type GuardedChild,
  type GuardedJob,
  type GuardedSession,
  type GuardState,
  idleGuardState,
  overdueGuardedJobs,
  readGuardLine,
} from "./guard_state.ts";

/**
 * The name of the process, at most 15 bytes. The name does not contain "baton", so that `pkill baton` does not also
 * kill the guard.
 */
export const guardProcessName = "lock-guard";

const input = 0;
const output = 1;
const errors = 2;

/**
 * The longest time between two readings of the clock, in milliseconds. poll(2) does not return when a suspended machine
 * resumes, so the guard must look at the clock.
 */
const checkEveryMs = 1000;

const killPauseMs = 10;

/** The pipe counts as ended after this many failed reads in a row, because a read can also fail temporarily. */
const failedReadsMax = 3;

/** The most reads in one step, far more than a full pipe or socket needs. */
const readsMax = 64;

/** The longest pause between two kill passes, in milliseconds, if processes live on after SIGKILL. */
const killPauseMsMax = 1000;

/**
 * While baton is stopped, the guard keeps the session alive if processes live longer than this after their deadline, in
 * milliseconds. Otherwise the session would end while they run.
 */
const stuckAfterMs = 100;

const killPauseMsOfStuck = 100;

/** How long the processes of a dead baton may live before the guard keeps its session alive, in milliseconds. */
const keepAfterMs = 250;

/** How long baton's last thread may live after its pipe has ended, in milliseconds. */
const dyingMs = 1000;

/** A job for which the guard keeps the lock, because some of its processes may be alive. */
export interface GuardKeptJob {
  readonly nodes: readonly string[];
  /** The living processes, as `describeUnstoppableProcesses` describes them; empty if there are none. */
  readonly what: string;
}

/**
 * The session of a baton that is dead or stopped. The guard keeps the session alive while processes that it cannot stop
 * may be alive.
 */
export interface GuardKeptSession {
  /** True if the session has ended, or if each job with living processes has lost its lock. */
  readonly isLost: boolean;
  /** Writes into the holders' records why the locks are kept. The guard calls this from time to time. */
  show(jobs: readonly GuardKeptJob[]): void;
  end(): Promise<unknown>;
  /** Stops keeping the session alive: baton itself runs again. */
  leave(): void;
}

/** Actions of the guard on baton's session. `handle` is the handle of `GuardedSession`. */
export interface GuardSessionActions {
  end(handle: string): Promise<unknown>;
  keep(handle: string): Promise<GuardKeptSession>;
}

/** Runs the guard until nothing is left to watch, then ends the session if that is safe. */
export async function runGuard(sessions: GuardSessionActions): Promise<void> {
  const libc = await loadLibc();
  if (libc === null) return void writeSync(output, "failed it cannot call libc, which needs compiled code\n");
  for (const signal of [1, 2, 3, 13, 15]) libc.ignoreSignal(signal); // HUP INT QUIT PIPE TERM
  libc.setProcessName(guardProcessName);
  raisePriority();
  if ("Deno" in globalThis) (await import("../spawn/inherited_descriptors.ts")).closeInheritedDescriptors(libc);
  const loop = new GuardLoop(libc);
  let kept: GuardKeptSession | null = null;
  for (;;) {
    const next = loop.step(kept?.isLost);
    switch (next.kind) {
      case "end":
        if (next.session !== null) await (kept?.end() ?? sessions.end(next.session.handle));
        return;
      case "keep":
        if (next.says !== undefined) sayLast(libc, next.says);
        kept ??= await sessions.keep(next.session.handle);
        kept.show(next.jobs);
        await new Promise((resolve) => setTimeout(resolve, next.forMs)); // for the session, the event loop must run
        break;
      case "wait":
        kept?.leave();
        kept = null;
        libc.waitReadable(input, next.forMs);
        break;
      case "sleep":
        libc.sleep(next.forMs);
    }
  }
}

/**
 * Asks the kernel to prefer the guard to other processes, so that it kills in time on a machine whose processors are
 * busy. The kernel permits this to root, and to users whose RLIMIT_NICE allows it. Linux may share the processors among
 * sessions, and then counts only the priority of the guard's own session: autogroup, sched(7).
 */
function raisePriority(): void {
  const { PRIORITY_HIGHEST } = constants.priority;
  try {
    setPriority(PRIORITY_HIGHEST);
    writeFileSync("/proc/self/autogroup", String(PRIORITY_HIGHEST));
  } catch {
    // not permitted, or the system has no groups of this kind
  }
}

/** Writes a text to stderr without waiting for the reader. */
function say(libc: Libc, says: string): void {
  if (says !== "" && libc.waitWritable(errors, 0)) libc.write(errors, new TextEncoder().encode(says));
}

/**
 * Returns the sentence about a script that is about to be killed; empty if it needs none. The holder process says why
 * too late, or never if it is dead. Of a command, the user sees how its baton ends.
 */
function sentenceForScript({ jobs, session }: GuardState, cookie: string, cause: string): string {
  const { child, nodes = [] } = jobs.get(cookie) ?? {};
  if (child?.isScript !== true || !isSameProcessAlive(child)) return "";
  const locks = nodes.map((node) => node.replace(/\/h\/[^/]+$/, "")).join(", ");
  const holder = `holder process (pid ${session?.owner ?? "unknown"})`;
  return `baton: the hold of ${locks} is lost: its ${holder} ${cause}; the guard has killed what ran under it\n`;
}

/** Says a text, and closes stderr. A program that reads baton's stderr waits until all writers have closed stderr. */
function sayLast(libc: Libc, says: string): void {
  say(libc, says);
  libc.close(errors);
  openSync("/dev/null", "w"); // keeps the number in use, because the runtime may write to it
}

/** A job that the guard kills because its deadline has passed. Later renewals of the deadline have no effect. */
interface StartedKill {
  readonly deadlineMs: number;
  kill: JobKiller | null;
  killedAtMs: number;
  isOver: boolean;
}

/**
 * The next action of the guard. `wait` waits for the pipe, at most `forMs` milliseconds. `sleep` only sleeps, because
 * the pipe has ended. `keep` sleeps, and keeps the session alive from now on. `end` ends the session, if there is one,
 * and then the guard.
 */
export type GuardNextAction =
  | { readonly kind: "wait" | "sleep"; readonly forMs: number }
  | {
    readonly kind: "keep";
    readonly forMs: number;
    readonly session: GuardedSession;
    readonly jobs: readonly GuardKeptJob[];
    /**
     * A sentence that the guard writes to stderr before it closes stderr. If the sentence is empty, the guard only
     * closes stderr.
     */
    readonly says?: string;
  }
  | { readonly kind: "end"; readonly session: GuardedSession | null };

/** Decides what the guard does between two waits. */
export class GuardLoop {
  readonly #libc: Libc;
  readonly #pipe: PipeLines;
  readonly #kills = new Map<string, StartedKill>();
  /**
   * The process group of each command. If a job runs a second command with the same cookie, the second command has
   * another group.
   */
  readonly #groups = new WeakMap<GuardedChild, ProcessGroupWatch>();
  #groupsAtMs = 0;
  #state: GuardState = idleGuardState;
  #clearing: Clearing | null = null;

  constructor(libc: Libc) {
    this.#libc = libc;
    this.#pipe = new PipeLines(libc);
    report(libc, "ready");
  }

  /** Returns the next action. `isLost` is true if the session that the guard keeps alive is lost. */
  step(isLost = false): GuardNextAction {
    if (this.#clearing !== null) return this.#clearing.step(isLost);
    // Reads the clock before the pipe: a renewal that baton wrote in time then counts, even if this process has stood
    // still.
    const nowMs = this.#libc.bootTimeMs();
    const lines = this.#pipe.read();
    if (lines === null) {
      // An unread line may name another job, so the guard must not end the session.
      if (!this.#pipe.isAtEnd) this.#state = readGuardLine(this.#state, "session");
      return this.#clearAll();
    }
    for (const line of lines) this.#state = readGuardLine(this.#state, line);
    if (lines.includes("ask")) report(this.#libc, "runs");
    if (this.#state.done) return { kind: "end", session: null };
    for (const cookie of this.#kills.keys()) if (!this.#state.jobs.has(cookie)) this.#kills.delete(cookie);
    this.#checkGroups();
    this.#recordOverdue(nowMs);
    const jobs = isLost ? [] : this.#stuckJobs();
    const needsPass = this.#killOverdue(jobs.length > 0);
    const { session } = this.#state;
    if (jobs.length > 0 && session !== null) return { kind: "keep", forMs: killPauseMsOfStuck, session, jobs };
    return { kind: "wait", forMs: this.#nextWakeMs(needsPass) };
  }

  #nextWakeMs(needsPass: boolean): number {
    if (needsPass) return killPauseMs;
    const deadlines = [...this.#state.jobs].filter(([cookie]) => !this.#kills.has(cookie)).map(([, job]) =>
      job.deadlineMs
    );
    return Math.min(checkEveryMs, ...deadlines.map((deadlineMs) => Math.max(0, deadlineMs - this.#libc.bootTimeMs())));
  }

  #recordOverdue(nowMs: number): void {
    for (const cookie of overdueGuardedJobs(this.#state, nowMs)) {
      if (this.#kills.has(cookie)) continue;
      const deadlineMs = this.#state.jobs.get(cookie)?.deadlineMs ?? 0;
      this.#kills.set(cookie, { deadlineMs, kill: null, killedAtMs: Infinity, isOver: false });
    }
  }

  /**
   * Returns the jobs that have living processes after their deadline while baton is stopped. A stopped baton cannot
   * keep its session alive, so the guard must.
   */
  #stuckJobs(): GuardKeptJob[] {
    const { session, jobs } = this.#state;
    const lateMs = this.#libc.bootTimeMs() - stuckAfterMs;
    const stuck = [...this.#kills].filter(([, { isOver, killedAtMs }]) => !isOver && killedAtMs < lateMs);
    if (session === null || stuck.length === 0 || readProcess(session.owner)?.isStopped !== true) return [];
    return stuck.map(([cookie, { kill }]) => keptJob(jobs.get(cookie), kill)).filter(({ what }) => what !== "");
  }

  /** Makes a kill pass over each overdue job. Returns true if another pass is needed. */
  #killOverdue(isPatient: boolean): boolean {
    let needsPass = false;
    for (const [cookie, started] of this.#kills) {
      if (started.isOver) continue;
      if (started.kill === null) {
        started.kill = this.#killOf(cookie, "stood still, or its processes ended too late");
        started.killedAtMs = this.#libc.bootTimeMs();
        report(this.#libc, `killing ${cookie}`);
      }
      const end = started.kill.killOnce(isPatient);
      started.isOver = end !== null;
      needsPass ||= !started.isOver;
      if (end === null) continue;
      report(this.#libc, `cleared ${cookie} ${Math.max(0, Math.round(end.clearedAtMs - started.deadlineMs))}`);
    }
    return needsPass;
  }

  /**
   * Starts to kill all jobs, because the pipe has ended. From now on, deadlines do not matter, and no process reads the
   * guard's reports.
   */
  #clearAll(): GuardNextAction {
    const kills = new Map([...this.#state.jobs.keys()].map((cookie) => [cookie, this.#killOf(cookie, "has died")]));
    this.#clearing = new Clearing(this.#state, kills, this.#libc);
    return this.#clearing.step(false);
  }

  #killOf(cookie: string, cause: string): JobKiller {
    const job = this.#state.jobs.get(cookie) ?? { child: null, deadlineMs: 0, nodes: [], known: [], isLeft: false };
    const group = job.child === null ? null : this.#groupOf(job.child);
    const sentence = sentenceForScript(this.#state, cookie, cause);
    return new JobKiller(cookie, job, { libc: this.#libc, group, onOver: () => say(this.#libc, sentence) });
  }

  /**
   * Checks once a second whether the process groups still belong to the commands. A job that ends earlier needs no
   * check.
   */
  #checkGroups(): void {
    const nowMs = this.#libc.bootTimeMs();
    if (nowMs < this.#groupsAtMs + checkEveryMs) return;
    this.#groupsAtMs = nowMs;
    for (const { child } of this.#state.jobs.values()) if (child !== null) this.#groupOf(child).isOurs();
  }

  #groupOf(child: GuardedChild): ProcessGroupWatch {
    const known = this.#groups.get(child) ?? new ProcessGroupWatch(child);
    this.#groups.set(child, known);
    return known;
  }
}

/** Kills all jobs after the pipe has ended, then waits for the death of baton's last thread. */
class Clearing {
  readonly #state: GuardState;
  readonly #kills: ReadonlyMap<string, JobKiller>;
  readonly #libc: Libc;
  readonly #ends = new Map<string, JobKillResult>();
  readonly #startMs: number;
  /** The time at which the guard stops waiting for baton's death; null while the guard still kills jobs. */
  #lastMs: number | null = null;
  #isSaid = false;

  constructor(state: GuardState, kills: ReadonlyMap<string, JobKiller>, libc: Libc) {
    this.#state = state;
    this.#kills = kills;
    this.#libc = libc;
    this.#startMs = libc.bootTimeMs();
  }

  step(isLost: boolean): GuardNextAction {
    const { session } = this.#state;
    // A baton that is alive keeps its session itself.
    const isKept = session !== null && !isLost && this.#libc.parentPid() !== session.owner;
    for (const [cookie, kill] of this.#kills) {
      const end = this.#ends.get(cookie) ?? kill.killOnce(isKept);
      if (end !== null) this.#ends.set(cookie, end);
    }
    if (this.#ends.size === this.#kills.size) return this.#end();
    const tookMs = this.#libc.bootTimeMs() - this.#startMs;
    const jobs = tookMs < keepAfterMs ? [] : this.#unended();
    const isStuck = jobs.some(({ what }) => what !== "");
    const forMs = isStuck ? Math.min(killPauseMsMax, tookMs / 20) : killPauseMs;
    if (!isKept || !isStuck) return { kind: "sleep", forMs };
    const says = this.#isSaid ? {} : { says: this.#sentence(jobs) };
    this.#isSaid = true;
    return { kind: "keep", forMs, session, jobs, ...says };
  }

  /** Returns the sentence for stderr about processes that live on; empty if baton has already reported them. */
  #sentence(jobs: readonly GuardKeptJob[]): string {
    if ([...this.#state.jobs.values()].some(({ isLeft }) => isLeft)) return "";
    const which = jobs.map(({ what }) => what).filter(Boolean).join("; ");
    const kept = "its guard keeps the lock until the process has ended; baton break --force releases it now";
    return `baton: the command of a baton that was killed ${which}; ${kept}\n`;
  }

  #unended(): GuardKeptJob[] {
    const unended = [...this.#kills].filter(([cookie]) => !this.#ends.has(cookie));
    return unended.map(([cookie, kill]) => keptJob(this.#state.jobs.get(cookie), kill));
  }

  #end(): GuardNextAction {
    this.#lastMs ??= this.#libc.bootTimeMs() + dyingMs;
    const session = chooseGuardSessionToEnd(this.#state, {
      isGone: (pid) => this.#libc.parentPid() !== pid,
      isCleared: (cookie) => this.#ends.get(cookie)?.isCertain ?? false,
    });
    const isOver = session !== null || this.#state.session === null || this.#libc.bootTimeMs() >= this.#lastMs;
    return isOver ? { kind: "end", session } : { kind: "sleep", forMs: killPauseMs };
  }
}

function keptJob(job: GuardedJob | undefined, kill: JobKiller | null): GuardKeptJob {
  return { nodes: job?.nodes ?? [], what: describeUnstoppableProcesses(kill?.alive ?? []) };
}

class PipeLines {
  readonly #libc: Libc;
  readonly #decoder = new TextDecoder();
  readonly #chunk = new Uint8Array(64 << 10);
  #text = "";
  #failedReads = 0;
  isAtEnd = false;

  constructor(libc: Libc) {
    this.#libc = libc;
  }

  /**
   * Returns all complete lines in the pipe; null if no further line can come. The pipe may contain hours of renewals,
   * and some runtimes use a socket, so several reads may be needed.
   */
  read(): string[] | null {
    const lines: string[] = [];
    for (let reads = 0; reads < readsMax && this.#libc.waitReadable(input, 0); reads++) {
      const length = this.#libc.read(input, this.#chunk);
      this.isAtEnd = length === 0;
      this.#failedReads = length < 0 ? this.#failedReads + 1 : 0;
      if (length === 0 || this.#failedReads >= failedReadsMax) return lines.length > 0 ? lines : null;
      this.#text += this.#decoder.decode(this.#chunk.subarray(0, Math.max(0, length)), { stream: true });
      const parts = this.#text.split("\n");
      this.#text = parts.pop() ?? "";
      lines.push(...parts);
    }
    return lines;
  }
}

function report(libc: Libc, word: string): void {
  libc.write(output, new TextEncoder().encode(`${word}\n`));
}
