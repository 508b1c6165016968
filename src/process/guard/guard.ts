/**
 * baton's side of the guard: starts it, keeps its deadlines fresh, hears whether it struck, and starts another one when
 * it dies while there is something to guard.
 */
import process from "node:process";
import { BatonError, messageOf } from "../../errors.ts";
import { abortable } from "../../support/abort.ts";
import { expectEnd } from "../spawn/helper_process.ts";
import { type Libc, loadLibc } from "../libc.ts";
import { foreignProcessTable } from "../proc/process_table.ts";
import { type GuardProcess, type StartGuardProcess, startGuardProcess } from "./guard_process.ts";
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
  /** The guard of the moment; 0 while there is none. */
  pid(): number;
  /**
   * From now on everything that carries `cookie` dies with baton, or when `remainingMs()` was 0 once. Resolves when a
   * guard that has said it is there was told: it reads what is in its pipe before it finds the end of it. Rejects
   * START_FAILED if there is no guard, or with the signal's reason.
   */
  watch(cookie: string, options: WatchOptions): Promise<void>;
  /** Tells of the command, once it runs. */
  child(cookie: string, child: GuardedChild): void;
  /**
   * How many milliseconds after the deadline nothing was left alive of this job, in the words of a guard that struck;
   * null for one that did not, or does not answer.
   */
  clearedAfterMs(cookie: string, signal: AbortSignal): Promise<number | null>;
  /**
   * The session under which everything runs that is watched, and nothing else does, as `formatSessionHandle` says it: a guard
   * that outlives this process ends it when nothing is left of any job. It takes the place of the one before; null: it is to expire.
   */
  setSession(handle: string | null): void;
  /** Of this job nothing is left; others are watched on. */
  forget(cookie: string): void;
  /** There is nothing left to guard: it ends without a blow. Also for a guard that never had anything to watch. */
  done(): void;
}

export interface WatchOptions {
  readonly remainingMs: () => number;
  /** Calls the listener whenever `remainingMs` may have changed, up to `forget()` or `done()`. Returns what takes it off. */
  readonly subscribe: (listener: () => void) => () => void;
  /** The guard strikes: it has seen the deadline pass. */
  readonly onStrike: () => void;
  /** The guard was gone and another one watches, or, after too many, none does. */
  readonly onReplaced: (replaced: boolean) => void;
  readonly signal?: AbortSignal;
  /** A command that runs already: told together with the order to watch. */
  readonly child?: GuardedChild;
}

/** Somebody who kills guard after guard wants none; baton itself still keeps every deadline. */
const replacementsMax = 5;

/** That a job is over is said with what is said next, and after this at the latest: it is not worth waking the guard. Milliseconds. */
const forgetMsMax = 100;

/** Starts the guard and returns at once: its start runs beside the wait for the lock. */
export function startGuard(start: StartGuardProcess = startGuardProcess): Guard {
  return new GuardKeeper(start);
}

/** A job as it is told to a guard, and to the next one. */
interface Watched {
  readonly libc: Libc | null;
  readonly options: WatchOptions;
  readonly cleared: PromiseWithResolvers<number | null>;
  child: GuardedChild | null;
  /** The order to watch is on its way into the pipe. */
  told: Promise<void> | undefined;
  isWatched: boolean;
  isStruck: boolean;
  unsubscribe: () => void;
}

class GuardKeeper implements Guard {
  readonly #start: StartGuardProcess;
  readonly #jobs = new Map<string, Watched>();
  /** Why nothing can be watched here: the same for each of many jobs. */
  readonly #foreignTable = foreignProcessTable();
  /** Of the guard of the moment: it has said that it reads. */
  #ready = Promise.withResolvers<void>();
  #isReady = false;
  #process: GuardProcess | null = null;
  #done = false;
  #replacements = 0;
  /** Lines that wait for the next one. */
  #unsaid = "";
  #session: GuardedSession | null = null;

  constructor(start: StartGuardProcess) {
    this.#start = start;
    this.#launch();
  }

  pid(): number {
    return this.#process?.pid ?? 0;
  }

  async watch(cookie: string, options: WatchOptions): Promise<void> {
    if (this.#foreignTable !== null) {
      throw new BatonError("START_FAILED", `The job's processes cannot be told from others: ${this.#foreignTable}`);
    }
    const job: Watched = {
      options,
      libc: await loadLibc(),
      cleared: Promise.withResolvers(),
      child: options.child ?? null,
      told: undefined,
      isWatched: false,
      isStruck: false,
      unsubscribe: () => {},
    };
    this.#jobs.set(cookie, job);
    this.#send(cookie, job);
    // At once, not when the command runs: a guard may be slow to be there, and a command to start.
    if (!this.#done) job.unsubscribe = options.subscribe(() => this.#renew(cookie, job));
    await abortable(this.#ready.promise, options.signal);
    if (job.told !== undefined) await abortable(job.told, options.signal);
    job.isWatched = true;
  }

  child(cookie: string, child: GuardedChild): void {
    const job = this.#jobs.get(cookie);
    if (job !== undefined) job.child = child;
    void this.#say(childLine(cookie, child));
  }

  async clearedAfterMs(cookie: string, signal: AbortSignal): Promise<number | null> {
    const job = this.#jobs.get(cookie);
    return job === undefined ? null : await abortable(job.cleared.promise, signal).catch(() => null);
  }

  forget(cookie: string): void {
    this.#jobs.get(cookie)?.unsubscribe();
    this.#jobs.delete(cookie);
    if (this.#unsaid === "") setTimeout(() => void this.#say(""), forgetMsMax).unref();
    this.#unsaid += forgetLine(cookie);
  }

  setSession(handle: string | null): void {
    if (this.#done) return;
    this.#session = handle === null ? null : { owner: process.pid, handle };
    void this.#say(sessionLine(this.#session));
  }

  done(): void {
    this.#done = true;
    this.#unsaid = "";
    for (const job of this.#jobs.values()) job.unsubscribe();
    if (this.#process === null) return;
    this.#process.send("done\n"); // it ends by that: ending the pipe as well costs Bun two threads
    expectEnd(this.#process.pid, { kills: !this.#isReady });
  }

  #launch(): void {
    if (this.#isReady) this.#ready = Promise.withResolvers();
    this.#isReady = false;
    this.#ready.promise.catch(() => {}); // asked for by watch() alone, which may never be called
    let started: GuardProcess | Promise<GuardProcess>;
    try {
      started = this.#start((line) => this.#heard(line));
    } catch (error) {
      return this.#failed(`Cannot start the guard process: ${messageOf(error)}`);
    }
    if (started instanceof Promise) started.then((guard) => this.#launched(guard), () => this.#ended());
    else this.#launched(started);
  }

  #launched(guard: GuardProcess): void {
    this.#process = guard;
    this.#unsaid = ""; // of those that are over it was never told
    guard.ended.then(() => this.#ended());
    if (this.#done) return this.done();
    for (const [cookie, job] of this.#jobs) {
      if (!job.isStruck) this.#send(cookie, job);
      else this.#session = null; // of such a job this guard does not hear
    }
    // Behind the jobs: no guard may know of the session and not of what runs under it.
    if (this.#session !== null) void this.#say(sessionLine(this.#session));
  }

  #send(cookie: string, job: Watched): void {
    const child = job.child === null ? "" : childLine(cookie, job.child);
    job.told = this.#say(watchLine(cookie, deadlineOf(job)) + child);
  }

  #renew(cookie: string, job: Watched): void {
    void this.#say(renewLine(cookie, deadlineOf(job)));
  }

  /** Behind what waits to be said. */
  #say(line: string): Promise<void> | undefined {
    const lines = this.#unsaid + line;
    this.#unsaid = "";
    return lines === "" ? undefined : this.#process?.send(lines);
  }

  #heard(line: string): void {
    const [word, cookie = "", number] = line.split(" ");
    const job = this.#jobs.get(cookie);
    if (word === "ready") {
      for (const { isWatched, options } of this.#jobs.values()) if (isWatched) options.onReplaced(true);
      this.#isReady = true;
      this.#ready.resolve();
    } else if (word === "struck" && job !== undefined) {
      job.isStruck = true;
      job.options.onStrike();
    } else if (word === "cleared") {
      job?.cleared.resolve(Number(number));
    }
  }

  #ended(): void {
    this.#process = null;
    const jobs = [...this.#jobs.values()];
    // What it has not said by now nobody will.
    for (const job of jobs) if (job.isStruck || this.#done) job.cleared.resolve(null);
    if (this.#done || (jobs.length > 0 && jobs.every((job) => job.isStruck))) return;
    if (this.#replacements++ < replacementsMax) return this.#launch();
    this.#failed(
      `Cannot keep a guard process running: it ended ${replacementsMax + 1} times without having been asked to`,
    );
  }

  #failed(message: string): void {
    this.#ready.reject(new BatonError("START_FAILED", message));
    for (const { cleared, options } of this.#jobs.values()) {
      cleared.resolve(null);
      options.onReplaced(false);
    }
  }
}

/** On the boot clock, which is read first: a pause between the two makes the deadline early. Without libc there is no guard. */
function deadlineOf({ libc, options }: Pick<Watched, "libc" | "options">): number {
  return (libc?.bootTimeMs() ?? 0) + options.remainingMs();
}
