/** baton's side of the guard: starts it, renews its deadlines, receives its reports, and replaces it when it dies while it is needed. */
import { BatonError, messageOf } from "../../errors.ts";
import { abortable } from "../../support/abort.ts";
import { system } from "../../support/own_process.ts";
import { type HelperProcess, markAsEnding, startHelper } from "../spawn/helper_process.ts";
import { type Libc, loadLibc } from "../libc.ts";
import { argumentsOf, otherNamespaceReason } from "../proc/process_table.ts";
import {
  childLine,
  forgetLine,
  type GuardedChild,
  type GuardedSession,
  renewLine,
  sessionLine,
  watchLine,
} from "./guard_state.ts";

export interface Guard {
  /** The current guard process; 0 while there is none. */
  pid(): number;
  /**
   * Makes the guard kill every process that carries `cookie` when baton dies, or when `remainingMs()` has reached 0. Resolves when a
   * ready guard has the line in its pipe: it reads all lines before it sees the end of the pipe. Rejects with START_FAILED if
   * there is no guard, or with the signal's reason.
   */
  watch(cookie: string, options: GuardWatchOptions): Promise<void>;
  reportChild(cookie: string, child: GuardedChild): void;
  /** Milliseconds from the deadline until all processes of the job were dead, as the guard reports; null if it killed none or does not report. */
  clearedAfterMs(cookie: string, signal: AbortSignal): Promise<number | null>;
  /**
   * Sets the session under which all watched jobs run, and nothing else, in the format of `formatSessionHandle`. A guard that outlives this
   * process ends the session when all processes of all jobs are dead. Null: the session is left to expire.
   */
  setSession(handle: string | null): void;
  /** All processes of this job are dead; the guard stops watching it. */
  forget(cookie: string): void;
  /** Ends the guard without killing anything. */
  end(): void;
}

export interface GuardWatchOptions {
  readonly remainingMs: () => number;
  /** Calls the listener whenever `remainingMs` may have changed, until `forget()` or `end()`. Returns the function that unsubscribes. */
  readonly subscribe: (listener: () => void) => () => void;
  /** The guard has seen the deadline pass, and kills the job. */
  readonly onKill: () => void;
  /** The guard died. True: another one watches now. False: too many have died, and none watches. */
  readonly onReplaced: (replaced: boolean) => void;
  readonly signal?: AbortSignal;
  /** A script that runs already, in a group of others; reported together with the job. */
  readonly child?: GuardedChild;
}

/** Limit for a user who keeps killing guards. baton itself still enforces every deadline. */
const replacementsMax = 5;

/** The end of a job is sent with the next line, or after this many milliseconds: it is not worth waking the guard. */
const forgetMsMax = 100;

type StartGuardProcess = (onLine: (line: string) => void) => HelperProcess | Promise<HelperProcess>;

const [guardName, guardWord] = ["lock-guard", "__guard"];

/** Starts in /, so that it keeps no directory busy. */
const startGuardProcess: StartGuardProcess = (onLine) =>
  startHelper({ args: [guardWord], argv0: guardName, cwd: "/" }, onLine);

/** Whether the process is a guard. False when it is gone. */
export function isGuardProcess(pid: number): boolean {
  const words = argumentsOf(pid);
  return words[0] === guardName && words.at(-1) === guardWord;
}

/** Starts the guard and returns immediately: the guard starts while baton waits for the lock. */
export function startGuard(start: StartGuardProcess = startGuardProcess): Guard {
  return new GuardHandle(start);
}

/** A job as it is reported to a guard, and to a guard that replaces it. */
interface WatchedJob {
  readonly libc: Libc | null;
  readonly options: GuardWatchOptions;
  readonly cleared: PromiseWithResolvers<number | null>;
  child: GuardedChild | null;
  /** Resolves when the job's line is in the pipe. */
  sent: Promise<void> | undefined;
  isWatched: boolean;
  isKilled: boolean;
  unsubscribe: () => void;
}

class GuardHandle implements Guard {
  readonly #start: StartGuardProcess;
  readonly #jobs = new Map<string, WatchedJob>();
  /** The reason why no job can be watched here; null if jobs can be watched. */
  readonly #otherNamespace = otherNamespaceReason();
  /** The current guard has reported that it reads. */
  #ready = Promise.withResolvers<void>();
  #isReady = false;
  #process: HelperProcess | null = null;
  #done = false;
  #replacements = 0;
  /** Lines that are sent with the next one. */
  #pendingLines = "";
  #session: GuardedSession | null = null;

  constructor(start: StartGuardProcess) {
    this.#start = start;
    this.#launch();
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
      isWatched: false,
      isKilled: false,
      unsubscribe: () => {},
    };
    this.#jobs.set(cookie, job);
    this.#send(cookie, job);
    // The deadline is renewed from now on, not from the command's start: the guard or the command may start slowly.
    if (!this.#done) job.unsubscribe = options.subscribe(() => void this.#write(renewLine(cookie, deadlineOf(job))));
    await abortable(this.#ready.promise, options.signal);
    if (job.sent !== undefined) await abortable(job.sent, options.signal);
    job.isWatched = true;
  }

  reportChild(cookie: string, child: GuardedChild): void {
    const job = this.#jobs.get(cookie);
    if (job !== undefined) job.child = child;
    void this.#write(childLine(cookie, child));
  }

  async clearedAfterMs(cookie: string, signal: AbortSignal): Promise<number | null> {
    const job = this.#jobs.get(cookie);
    return job === undefined ? null : await abortable(job.cleared.promise, signal).catch(() => null);
  }

  forget(cookie: string): void {
    this.#jobs.get(cookie)?.unsubscribe();
    this.#jobs.delete(cookie);
    if (this.#pendingLines === "") setTimeout(() => void this.#write(""), forgetMsMax).unref();
    this.#pendingLines += forgetLine(cookie);
  }

  setSession(handle: string | null): void {
    if (this.#done) return;
    this.#session = handle === null ? null : { owner: system.pid, handle };
    void this.#write(sessionLine(this.#session));
  }

  end(): void {
    this.#done = true;
    this.#pendingLines = "";
    for (const job of this.#jobs.values()) job.unsubscribe();
    if (this.#process === null) return;
    this.#process.send("done\n"); // ends the guard; closing the pipe as well costs Bun two threads
    markAsEnding(this.#process.pid, { kills: !this.#isReady });
  }

  #launch(): void {
    if (this.#isReady) this.#ready = Promise.withResolvers();
    this.#isReady = false;
    this.#ready.promise.catch(() => {}); // watch() alone awaits it, and may never be called
    let started: ReturnType<StartGuardProcess>;
    try {
      started = this.#start((line) => this.#received(line));
    } catch (error) {
      return this.#failed(`Cannot start the guard process: ${messageOf(error)}`);
    }
    if (started instanceof Promise) started.then((guard) => this.#launched(guard), () => this.#ended());
    else this.#launched(started);
  }

  #launched(guard: HelperProcess): void {
    this.#process = guard;
    this.#pendingLines = ""; // a new guard was never told of jobs that have ended
    guard.ended.then(() => this.#ended());
    if (this.#done) return this.end();
    for (const [cookie, job] of this.#jobs) {
      if (!job.isKilled) this.#send(cookie, job);
      else this.#session = null; // the new guard does not know this job, so it must not end the session
    }
    // The session is sent after the jobs: a guard that knows the session must know everything that runs under it.
    if (this.#session !== null) void this.#write(sessionLine(this.#session));
  }

  #send(cookie: string, job: WatchedJob): void {
    const child = job.child === null ? "" : childLine(cookie, job.child);
    job.sent = this.#write(watchLine(cookie, deadlineOf(job)) + child);
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
    if (word === "ready") {
      for (const { isWatched, options } of this.#jobs.values()) if (isWatched) options.onReplaced(true);
      this.#isReady = true;
      this.#ready.resolve();
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
    if (this.#done || (jobs.length > 0 && jobs.every((job) => job.isKilled))) return;
    if (this.#replacements++ < replacementsMax) return this.#launch();
    this.#failed(`Cannot keep a guard process running: it was killed ${replacementsMax + 1} times`);
  }

  #failed(message: string): void {
    this.#ready.reject(new BatonError("START_FAILED", message));
    for (const { cleared, options } of this.#jobs.values()) {
      cleared.resolve(null);
      options.onReplaced(false);
    }
  }
}

/** The deadline on the boot clock. The clock is read first, so that a pause in between makes the deadline early. Without libc there is no guard. */
function deadlineOf({ libc, options }: Pick<WatchedJob, "libc" | "options">): number {
  return (libc?.bootTimeMs() ?? 0) + options.remainingMs();
}
