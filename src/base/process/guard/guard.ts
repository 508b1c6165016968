/**
 * Manages the guard process for baton: starts the guard, renews its deadlines, and receives its reports. Replaces a
 * guard that dies or stops responding while a command needs a guard.
 */
import process from "node:process";
import { BatonError, errorMessage } from "../../errors.ts";
import { rejectOnAbort } from "../../support/abort.ts";
import { type Clock, systemClock } from "../../support/clock.ts";
import { processSystem } from "../../support/own_process.ts";
import { isCompiledProgram } from "../../support/self_exec.ts";
import { type HelperProcess, markHelperEnding, startHelperProcess } from "../spawn/helper_process.ts";
import { type Libc, loadLibc } from "../libc.ts";
import { readProcess, readProcessArguments, whyProcessTableIsUnusable } from "../proc/process_table.ts";
import {
  guardAliveQuestionLine,
  guardChildLine,
  type GuardedChild,
  type GuardedSession,
  guardForgetLine,
  guardGiveUpLine,
  guardKnownProcessesLine,
  guardRenewLine,
  guardSessionLine,
  guardWatchLine,
} from "./guard_state.ts";

export interface CommandGuard {
  /** Returns the pid of the guard process; 0 if there is none. */
  pid(): number;
  /**
   * Makes the guard kill every process that carries `cookie` when baton dies or `remainingMs()` has reached 0. Resolves
   * when the guard is ready and this order is in the pipe to it; the guard reads all lines before it sees the end of
   * the pipe. Rejects with START_FAILED if there is no guard, or with the reason of `signal`.
   */
  watch(cookie: string, options: GuardWatchOptions): Promise<void>;
  reportChild(cookie: string, child: GuardedChild): void;
  /**
   * Resolves with how long after the deadline all processes of the job were dead, in milliseconds, as the guard
   * reports. Resolves with null if the guard killed no process or does not report.
   */
  clearedAfterMs(cookie: string, signal: AbortSignal): Promise<number | null>;
  /**
   * Tells the guard the session under which all watched jobs run, as text from `encodeSessionHandle`. If the guard
   * outlives this process, it ends the session once all processes of all jobs are dead. If the text is null, the guard
   * does not end the session; the session expires.
   */
  setSession(handle: string | null): void;
  /**
   * Tells the guard about processes of the job that the guard may not find itself: orphans, and processes that baton
   * cannot stop. The list replaces the previous one.
   */
  reportKnown(cookie: string, pids: readonly number[]): void;
  /**
   * Tells the guard that baton gives up stopping the job and ends. The guard continues to kill the job's processes, but
   * does not end the session.
   */
  leave(cookie: string): void;
  /** Ends the watch over a job, because all its processes are dead. */
  forget(cookie: string): void;
  end(): void;
}

export interface GuardWatchOptions {
  readonly remainingMs: () => number;
  /**
   * Calls the listener whenever `remainingMs` may have changed. Stops when the returned function, `forget()` or `end()`
   * is called.
   */
  readonly subscribe: (listener: () => void) => () => void;
  /** Called when the guard kills the job because its deadline has passed. */
  readonly onKill: () => void;
  /**
   * Called with the reason when no guard can watch the job; baton keeps trying to start one. Called with null when a
   * new guard watches the job.
   */
  readonly onReplaced: (missing: string | null) => void;
  readonly signal?: AbortSignal;
  readonly nodes?: readonly string[];
  /**
   * A script that already runs, in a process group that may contain other programs. baton reports the script together
   * with the job.
   */
  readonly child?: GuardedChild;
}

/**
 * The number of guards that baton starts in a row without a pause, if each of them dies. After that, baton pauses
 * before each start; meanwhile baton itself still enforces every deadline.
 */
const replacementsMax = 5;

/**
 * The shortest and the longest pause before baton starts a guard again, in milliseconds. The pause doubles each time.
 */
const pauseMsMin = 1000;
const pauseMsMax = 60_000;

/** If a guard lives this long, in milliseconds, baton resets the count of dead guards. */
const steadyMs = 60_000;

/**
 * How often baton asks the guard whether it runs, in milliseconds, and how many questions may stay unanswered. Five
 * times as many may stay unanswered before a guard has sent its first report.
 */
const askEveryMs = 1000, unansweredMax = 3;

/**
 * How long baton may delay the line that says that a job has ended, in milliseconds. baton sends this line together
 * with the next one, to avoid waking the guard only for it.
 */
const forgetMsMax = 100;

type StartGuardProcess = (onLine: (line: string) => void) => HelperProcess | Promise<HelperProcess>;

const guardName = "lock-guard";
const guardWord = "__guard";

/** Starts the guard process. Its working directory is /, so that the guard keeps no file system busy. */
const startGuardProcess: StartGuardProcess = (onLine) => {
  // Keeps Bun from preparing memory in advance. A release of Bun that does not know the variable would not start.
  const env = isCompiledProgram() && { env: { ...process.env, BUN_JSC_warmUpMarkedBlockCount: "0" } };
  return startHelperProcess({ args: [guardWord], argv0: guardName, cwd: "/", ...env, stderr: 2 }, onLine);
};

export function isGuardProcess(pid: number): boolean {
  const words = readProcessArguments(pid);
  return words[0] === guardName && words.at(-1) === guardWord;
}

/**
 * Starts the guard, and does not wait: the guard gets ready while baton waits for the lock. `say` must always show its
 * sentence to the user: it says that commands run without a guard, or have a guard again.
 */
export function startGuard(
  say: (sentence: string) => void,
  start: StartGuardProcess = startGuardProcess,
  clock: Clock = systemClock(),
): CommandGuard {
  return new GuardHandle(say, start, clock);
}

/** A watched job, with all that a new guard must be told. */
interface WatchedJob {
  readonly libc: Libc | null;
  readonly options: GuardWatchOptions;
  readonly cleared: PromiseWithResolvers<number | null>;
  child: GuardedChild | null;
  /** Resolves when the line about the job is in the pipe to the guard. */
  sent: Promise<void> | undefined;
  /** More lines for a new guard: the processes last reported, and whether baton has given up on the job. */
  known: string;
  left: string;
  isWatched: boolean;
  isKilled: boolean;
  unsubscribe: () => void;
}

class GuardHandle implements CommandGuard {
  readonly #say: (sentence: string) => void;
  readonly #start: StartGuardProcess;
  readonly #clock: Clock;
  #cancelAsk = () => {};
  #cancelRetry = () => {};
  readonly #jobs = new Map<string, WatchedJob>();
  /** The reason why no job can be watched on this system; null if jobs can be watched. */
  readonly #otherNamespace = whyProcessTableIsUnusable();
  #ready = Promise.withResolvers<void>();
  #isReady = false;
  #process: HelperProcess | null = null;
  #done = false;
  /** The number of guards in a row that have died. */
  #deaths = 0;
  #pauseMs = pauseMsMin;
  #startedAtMs = 0;
  #unanswered = 0;
  /** The reason why the guard cannot work, as the guard reported; empty if it reported none. */
  #fault = "";
  /** True if the last guard has ended, and baton starts no new guard until a job needs one. */
  #isRetired = false;
  /** True if baton has told the user that no guard watches the commands. */
  #isMissing = false;
  #pendingLines = "";
  #session: GuardedSession | null = null;

  constructor(say: (sentence: string) => void, start: StartGuardProcess, clock: Clock) {
    this.#say = say;
    this.#start = start;
    this.#clock = clock;
    this.#launch();
    this.#askLater();
  }

  pid(): number {
    return this.#process?.pid ?? 0;
  }

  async watch(cookie: string, options: GuardWatchOptions): Promise<void> {
    if (this.#otherNamespace !== null) {
      throw new BatonError("START_FAILED", `Cannot tell the command's processes from others: ${this.#otherNamespace}`);
    }
    const job: WatchedJob = {
      options,
      libc: await loadLibc(),
      cleared: Promise.withResolvers(),
      child: options.child ?? null,
      sent: undefined,
      known: "",
      left: "",
      isWatched: false,
      isKilled: false,
      unsubscribe: () => {},
    };
    this.#jobs.set(cookie, job);
    if (this.#isRetired) this.#launch();
    else this.#send(cookie, job);
    // Renew the deadline from now on, not from the start of the command, because the guard or the command may start
    // slowly.
    if (!this.#done) {
      job.unsubscribe = options.subscribe(() => void this.#write(guardRenewLine(cookie, deadlineOf(job))));
    }
    await rejectOnAbort(this.#ready.promise, options.signal);
    if (job.sent !== undefined) await rejectOnAbort(job.sent, options.signal);
    job.isWatched = true;
  }

  reportChild(cookie: string, child: GuardedChild): void {
    const job = this.#jobs.get(cookie);
    if (job !== undefined) job.child = child;
    void this.#write(guardChildLine(cookie, child));
  }

  async clearedAfterMs(cookie: string, signal: AbortSignal): Promise<number | null> {
    const job = this.#jobs.get(cookie);
    return job === undefined ? null : await rejectOnAbort(job.cleared.promise, signal).catch(() => null);
  }

  forget(cookie: string): void {
    this.#jobs.get(cookie)?.unsubscribe();
    this.#jobs.delete(cookie);
    if (this.#pendingLines === "") setTimeout(() => void this.#write(""), forgetMsMax).unref();
    this.#pendingLines += guardForgetLine(cookie);
  }

  reportKnown(cookie: string, pids: readonly number[]): void {
    const job = this.#jobs.get(cookie);
    const line = guardKnownProcessesLine(
      cookie,
      pids.map((pid) => ({ pid, startTicks: readProcess(pid)?.startTicks ?? 0 })),
    );
    if (job !== undefined) job.known = line;
    void this.#write(line);
  }

  leave(cookie: string): void {
    const job = this.#jobs.get(cookie);
    if (job !== undefined) job.left = guardGiveUpLine(cookie);
    void this.#write(guardGiveUpLine(cookie));
  }

  setSession(handle: string | null): void {
    if (this.#done) return;
    this.#session = handle === null ? null : { owner: processSystem.pid, handle };
    void this.#write(guardSessionLine(this.#session));
  }

  end(): void {
    this.#done = true;
    this.#pendingLines = "";
    this.#cancelAsk();
    this.#cancelRetry();
    for (const job of this.#jobs.values()) job.unsubscribe();
    if (this.#process === null) return;
    this.#process.send("done\n"); // this line ends the guard; Bun would need two threads to close the pipe as well
    markHelperEnding(this.#process.pid, { kills: !this.#isReady });
  }

  #launch(): void {
    this.#cancelRetry();
    if (this.#done) return;
    this.#isRetired = false;
    if (this.#isReady) this.#ready = Promise.withResolvers();
    this.#isReady = false;
    this.#unanswered = 0;
    this.#fault = "";
    this.#startedAtMs = this.#clock.now();
    this.#ready.promise.catch(() => {}); // only watch() awaits the promise, and it may never be called
    let guard: HelperProcess | null = null;
    let started: ReturnType<StartGuardProcess>;
    try {
      started = this.#start((line) => guard === this.#process && this.#received(line));
    } catch (error) {
      return this.#failed(`Cannot start the guard process: ${errorMessage(error)}`);
    }
    const launched = (process: HelperProcess) => this.#launched(guard = process);
    if (started instanceof Promise) started.then(launched, () => this.#ended());
    else launched(started);
  }

  #launched(guard: HelperProcess): void {
    this.#process = guard;
    this.#pendingLines = ""; // these lines are about jobs that have ended, and a new guard does not know those jobs
    guard.ended.then(() => guard === this.#process && this.#ended());
    if (this.#done) return this.end();
    for (const [cookie, job] of this.#jobs) {
      if (!job.isKilled) this.#send(cookie, job);
      else this.#session = null; // the new guard does not know this job, so it must not end the session
    }
    // The session is sent last: a guard that knows the session must know all jobs that run under it.
    if (this.#session !== null) void this.#write(guardSessionLine(this.#session));
  }

  #askLater(): void {
    this.#cancelAsk = this.#clock.startTimer(askEveryMs, () => this.#ask());
  }

  /**
   * Asks the guard whether it runs. Kills a guard that does not answer: such a guard does not see renewals, so it would
   * later kill a job whose lease was renewed.
   */
  #ask(): void {
    if (this.#done) return;
    this.#askLater();
    if (this.#process === null) return;
    if (this.#unanswered++ < (this.#isReady ? unansweredMax : 5 * unansweredMax)) {
      if (this.#isReady) void this.#write(guardAliveQuestionLine);
      else if (this.#unanswered > unansweredMax) this.#tellMissing("The guard does not start");
      return;
    }
    this.#process.kill();
    this.#ended(); // a guard that the kernel holds in a wait ends later, and does nothing before that
  }

  #send(cookie: string, job: WatchedJob): void {
    const child = job.child === null ? "" : guardChildLine(cookie, job.child);
    job.sent = this.#write(guardWatchLine(cookie, deadlineOf(job), job.options.nodes) + child + job.known + job.left);
  }

  #write(line: string): Promise<void> | undefined {
    const lines = this.#pendingLines + line;
    this.#pendingLines = "";
    return lines === "" ? undefined : this.#process?.send(lines);
  }

  #received(line: string): void {
    const [word, cookie = "", number] = line.split(" ");
    const job = this.#jobs.get(cookie);
    this.#unanswered = 0;
    if (word === "ready") {
      if (this.#isMissing) this.#say("a guard watches the running commands again");
      this.#isMissing = false;
      for (const { isWatched, options } of this.#jobs.values()) if (isWatched) options.onReplaced(null);
      this.#isReady = true;
      this.#ready.resolve();
    } else if (word === "failed") {
      this.#fault = line.slice(word.length + 1);
    } else if (word === "killing" && job !== undefined) {
      job.isKilled = true;
      job.options.onKill();
    } else if (word === "cleared") {
      job?.cleared.resolve(Number(number));
    }
  }

  #ended(): void {
    this.#process = null;
    const jobs = [...this.#jobs.values()];
    for (const job of jobs) if (job.isKilled || this.#done) job.cleared.resolve(null);
    this.#isRetired = jobs.length > 0 && jobs.every((job) => job.isKilled);
    if (this.#done || this.#isRetired) return;
    if (this.#clock.now() - this.#startedAtMs >= steadyMs) {
      this.#deaths = 0;
      this.#pauseMs = pauseMsMin;
    }
    this.#deaths++;
    if (this.#fault === "" && this.#deaths <= replacementsMax) return this.#launch();
    const what = this.#fault === "" ? `it has died ${this.#deaths} times` : this.#fault;
    void import("./low_limits.ts").then(({ describeLowLimits }) =>
      this.#failed(`Cannot keep a guard process running: ${what}${describeLowLimits(ownLimits())}`)
    );
  }

  #failed(message: string): void {
    if (this.#done) return;
    this.#ready.reject(new BatonError("START_FAILED", message));
    this.#isReady = true; // the next guard has another promise
    this.#isRetired = !this.#tellMissing(message);
    if (this.#isRetired) return;
    this.#cancelRetry = this.#clock.startTimer(this.#pauseMs, () => this.#launch());
    this.#pauseMs = Math.min(2 * this.#pauseMs, pauseMsMax);
  }

  /** Tells the user, only the first time, that no guard watches the commands. Returns true if any command runs. */
  #tellMissing(message: string): boolean {
    const watched = [...this.#jobs.values()].filter(({ isWatched }) => isWatched);
    if (this.#isMissing || watched.length === 0) return watched.length > 0;
    this.#isMissing = true;
    this.#say(`${message}; if baton is killed now, its commands keep running`);
    for (const { options } of watched) options.onReplaced(message);
    return true;
  }
}

/** Returns the resource limits of this process as the kernel prints them; empty without /proc. */
function ownLimits(): string {
  try {
    return processSystem.readText("/proc/self/limits");
  } catch {
    return "";
  }
}

/**
 * Returns the deadline on the boot clock. Reads the boot clock before the remaining time: a pause between the two makes
 * the deadline earlier, which is safe. Without libc there is no guard.
 */
function deadlineOf({ libc, options }: Pick<WatchedJob, "libc" | "options">): number {
  return (libc?.bootTimeMs() ?? 0) + options.remainingMs();
}
