/**
 * baton's side of the guard: starts it, renews its deadlines, receives its reports, and replaces it if it dies or stops
 * responding while it is needed.
 */
import { BatonError, errorMessage } from "../../errors.ts";
import { abortable } from "../../support/abort.ts";
import { type Clock, systemClock } from "../../support/clock.ts";
import { processSystem } from "../../support/own_process.ts";
import { type HelperProcess, markHelperEnding, startHelperProcess } from "../spawn/helper_process.ts";
import { type Libc, loadLibc } from "../libc.ts";
import { otherPidNamespaceReason, readProcess, readProcessArguments } from "../proc/process_table.ts";
import {
  guardAskLine,
  guardChildLine,
  type GuardedChild,
  type GuardedSession,
  guardForgetLine,
  guardKnownLine,
  guardLeftLine,
  guardRenewLine,
  guardSessionLine,
  guardWatchLine,
} from "./guard_state.ts";

export interface CommandGuard {
  /** Returns the pid of the current guard process; 0 while there is none. */
  pid(): number;
  /**
   * Makes the guard kill every process that carries `cookie` when baton dies, or when `remainingMs()` has reached 0.
   * Resolves when a ready guard has the line in its pipe: it reads all lines before it sees the end of the pipe.
   * Rejects with START_FAILED if there is no guard, or with the signal's reason.
   */
  watch(cookie: string, options: GuardWatchOptions): Promise<void>;
  reportChild(cookie: string, child: GuardedChild): void;
  /**
   * Returns the milliseconds from the deadline until all processes of the job were dead, as the guard reports them;
   * null if it killed none or does not report.
   */
  clearedAfterMs(cookie: string, signal: AbortSignal): Promise<number | null>;
  /**
   * Sets the session under which all watched jobs run, and nothing else, in the format of `encodeSessionHandle`. A
   * guard that outlives this process ends the session when all processes of all jobs are dead. Null lets the session
   * expire.
   */
  setSession(handle: string | null): void;
  /**
   * Reports processes of the job that the guard may not find: orphans, and those that cannot be stopped. They replace
   * the ones reported before.
   */
  reportKnown(cookie: string, pids: readonly number[]): void;
  /**
   * Reports that this process gives up stopping the job, and ends. The guard continues, and does not end the session.
   */
  leave(cookie: string): void;
  /** Ends the watch over a job: all its processes are dead. */
  forget(cookie: string): void;
  /** Ends the guard without killing anything. */
  end(): void;
}

export interface GuardWatchOptions {
  readonly remainingMs: () => number;
  /**
   * Calls the listener whenever `remainingMs` may have changed, until `forget()` or `end()`. Returns the function that
   * unsubscribes.
   */
  readonly subscribe: (listener: () => void) => () => void;
  /** Called when the guard has seen the deadline pass, and kills the job. */
  readonly onKill: () => void;
  /**
   * Called with null when another guard watches the job now; else with the reason why none does. baton then tries
   * again.
   */
  readonly onReplaced: (missing: string | null) => void;
  readonly signal?: AbortSignal;
  /** Paths of the job's lock on the server. */
  readonly nodes?: readonly string[];
  /** A script that already runs, in a process group of other programs; reported together with the job. */
  readonly child?: GuardedChild;
}

/**
 * The number of guards in a row that baton replaces immediately. It replaces further ones after a pause: baton itself
 * still enforces every deadline.
 */
const replacementsMax = 5;

/** The pause before a guard is started again, in milliseconds. It doubles up to the second number. */
const pauseMsMin = 1000;
const pauseMsMax = 60_000;

/** A guard that has lived this long, in milliseconds, resets the count of deaths. */
const steadyMs = 60_000;

/**
 * How often baton asks the guard whether it runs, in milliseconds, and how many questions may stay unanswered; five
 * times as many before its first report.
 */
const askEveryMs = 1000, unansweredMax = 3;

/** The end of a job goes with the next line, or after this many milliseconds: it is not worth waking the guard. */
const forgetMsMax = 100;

type StartGuardProcess = (onLine: (line: string) => void) => HelperProcess | Promise<HelperProcess>;

const guardName = "lock-guard";
const guardWord = "__guard";

/** Starts the guard in /, so that it keeps no directory busy. */
const startGuardProcess: StartGuardProcess = (onLine) =>
  startHelperProcess({ args: [guardWord], argv0: guardName, cwd: "/", stderr: 2 }, onLine);

/** Returns whether the process is a guard; false if it has ended. */
export function isGuardProcess(pid: number): boolean {
  const words = readProcessArguments(pid);
  return words[0] === guardName && words.at(-1) === guardWord;
}

/**
 * Starts the guard and returns immediately: the guard starts while baton waits for the lock. `say` must always show its
 * sentence to the user: commands run without a guard, or have one again.
 */
export function startGuard(
  say: (sentence: string) => void,
  start: StartGuardProcess = startGuardProcess,
  clock: Clock = systemClock(),
): CommandGuard {
  return new GuardHandle(say, start, clock);
}

/** A job, as reported to a guard and to its replacement. */
interface WatchedJob {
  readonly libc: Libc | null;
  readonly options: GuardWatchOptions;
  readonly cleared: PromiseWithResolvers<number | null>;
  child: GuardedChild | null;
  /** Resolves when the job's line is in the pipe. */
  sent: Promise<void> | undefined;
  /** Lines to send after those of its start: its last known processes, and that baton has given up on it. */
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
  /** The reason why no job can be watched here; null if jobs can be watched. */
  readonly #otherNamespace = otherPidNamespaceReason();
  /** Resolves when the current guard has reported that it reads. */
  #ready = Promise.withResolvers<void>();
  #isReady = false;
  #process: HelperProcess | null = null;
  #done = false;
  /** The number of guards in a row that have ended. */
  #deaths = 0;
  #pauseMs = pauseMsMin;
  #startedAtMs = 0;
  #unanswered = 0;
  /** The guard's own report that it cannot work. */
  #fault = "";
  /** The last guard has ended, and none is started until a job needs one. */
  #isRetired = false;
  /** The user knows that no guard watches. */
  #isMissing = false;
  /** Lines to send with the next one. */
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
    // The deadline is renewed from now on, not from the command's start: the guard or the command may start slowly.
    if (!this.#done) {
      job.unsubscribe = options.subscribe(() => void this.#write(guardRenewLine(cookie, deadlineOf(job))));
    }
    await abortable(this.#ready.promise, options.signal);
    if (job.sent !== undefined) await abortable(job.sent, options.signal);
    job.isWatched = true;
  }

  reportChild(cookie: string, child: GuardedChild): void {
    const job = this.#jobs.get(cookie);
    if (job !== undefined) job.child = child;
    void this.#write(guardChildLine(cookie, child));
  }

  async clearedAfterMs(cookie: string, signal: AbortSignal): Promise<number | null> {
    const job = this.#jobs.get(cookie);
    return job === undefined ? null : await abortable(job.cleared.promise, signal).catch(() => null);
  }

  forget(cookie: string): void {
    this.#jobs.get(cookie)?.unsubscribe();
    this.#jobs.delete(cookie);
    if (this.#pendingLines === "") setTimeout(() => void this.#write(""), forgetMsMax).unref();
    this.#pendingLines += guardForgetLine(cookie);
  }

  reportKnown(cookie: string, pids: readonly number[]): void {
    const job = this.#jobs.get(cookie);
    const line = guardKnownLine(cookie, pids.map((pid) => ({ pid, startTicks: readProcess(pid)?.startTicks ?? 0 })));
    if (job !== undefined) job.known = line;
    void this.#write(line);
  }

  leave(cookie: string): void {
    const job = this.#jobs.get(cookie);
    if (job !== undefined) job.left = guardLeftLine(cookie);
    void this.#write(guardLeftLine(cookie));
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
    this.#process.send("done\n"); // ends the guard; closing the pipe as well costs Bun two threads
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
    this.#ready.promise.catch(() => {}); // watch() alone awaits it, and may never be called
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
    this.#pendingLines = ""; // a new guard was never told of jobs that have ended
    guard.ended.then(() => guard === this.#process && this.#ended());
    if (this.#done) return this.end();
    for (const [cookie, job] of this.#jobs) {
      if (!job.isKilled) this.#send(cookie, job);
      else this.#session = null; // the new guard does not know this job, so it must not end the session
    }
    // The session is sent after the jobs: a guard that knows the session must know everything that runs under it.
    if (this.#session !== null) void this.#write(guardSessionLine(this.#session));
  }

  #askLater(): void {
    this.#cancelAsk = this.#clock.startTimer(askEveryMs, () => this.#ask());
  }

  /**
   * Kills a guard that is stopped or hangs before its deadlines pass: it does not see renewals, and would kill a job
   * whose lease was renewed.
   */
  #ask(): void {
    if (this.#done) return;
    this.#askLater();
    if (this.#process === null) return;
    if (this.#unanswered++ < (this.#isReady ? unansweredMax : 5 * unansweredMax)) {
      if (this.#isReady) void this.#write(guardAskLine);
      else if (this.#unanswered > unansweredMax) this.#tellMissing("The guard does not start");
      return;
    }
    this.#process.kill();
    this.#ended(); // it may end later, if it waits in the kernel, and does nothing before
  }

  #send(cookie: string, job: WatchedJob): void {
    const child = job.child === null ? "" : guardChildLine(cookie, job.child);
    job.sent = this.#write(guardWatchLine(cookie, deadlineOf(job), job.options.nodes) + child + job.known + job.left);
  }

  /** Sends the pending lines first. */
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
    // Reports that have not come by now never will.
    for (const job of jobs) if (job.isKilled || this.#done) job.cleared.resolve(null);
    this.#isRetired = jobs.length > 0 && jobs.every((job) => job.isKilled);
    if (this.#done || this.#isRetired) return;
    if (this.#clock.now() - this.#startedAtMs >= steadyMs) {
      this.#deaths = 0;
      this.#pauseMs = pauseMsMin;
    }
    this.#deaths++;
    if (this.#fault === "" && this.#deaths <= replacementsMax) return this.#launch();
    const what = this.#fault === "" ? `it has ended ${this.#deaths} times` : this.#fault;
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

  /** Tells the user once that no guard watches. Returns false if no command runs. */
  #tellMissing(message: string): boolean {
    const watched = [...this.#jobs.values()].filter(({ isWatched }) => isWatched);
    if (this.#isMissing || watched.length === 0) return watched.length > 0;
    this.#isMissing = true;
    this.#say(`${message}; if baton is killed now, its commands run on`);
    for (const { options } of watched) options.onReplaced(message);
    return true;
  }
}

/** Returns the limits of this process as the kernel prints them; empty without /proc. */
function ownLimits(): string {
  try {
    return processSystem.readText("/proc/self/limits");
  } catch {
    return "";
  }
}

/**
 * Returns the deadline on the boot clock. Reads the clock first, so that a pause in between makes the deadline earlier.
 * Without libc there is no guard.
 */
function deadlineOf({ libc, options }: Pick<WatchedJob, "libc" | "options">): number {
  return (libc?.bootTimeMs() ?? 0) + options.remainingMs();
}
