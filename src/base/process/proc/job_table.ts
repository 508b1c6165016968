/**
 * The commands (jobs) that one baton supervises at the same time, and the owners of baton's descendants. This module
 * reads /proc and remembers the owners; attribute_processes.ts decides who they are.
 */
import { isOwnHelperProcess, processSystem } from "../../support/own_process.ts";
import { CommandProcesses, findLivingProcesses, listLivingOrphans, reapAndListDescendants } from "./job_processes.ts";
import { attributeProcesses, type ObservedProcess, type ProcessOwners } from "./attribute_processes.ts";
import type { Libc } from "../libc.ts";
import {
  isBatonServiceProcess,
  isProcessAlive,
  listChildProcesses,
  type ProcessRow,
  readProcess,
  readProcessCookies,
  readProcessOrUnknown,
  sendSignal,
} from "./process_table.ts";

export interface JobTableEntry {
  readonly cookie: string;
  pid: number | null;
  startTicks: number;
  /** The position of this command in the order in which commands ended, from 1; 0 while it runs. */
  endOrder: number;
}

export interface JobTableSnapshot {
  readonly owners: ReadonlyMap<number, ProcessOwners>;
  /** Processes that died or disappeared before they were read. They may have left children. */
  readonly gone: readonly number[];
}

/** The shortest time between two reaps of dead orphans, in milliseconds, even if many commands ask for a reap. */
const reapEveryMs = 1000;

export class JobTable {
  readonly #jobs = new Map<string, JobTableEntry>();
  readonly #listeners = new Set<() => void>();
  #known: ReadonlyMap<number, ProcessOwners> = new Map();
  #ends = 0;
  #reapedAtMs = -Infinity;
  #turn: Promise<void> = Promise.resolve();
  #orphans: readonly (readonly [pid: number, owners: ProcessOwners | undefined])[] = [];

  /**
   * Resolves in a separate turn of the event loop for each caller. Each start takes milliseconds, and many jobs may
   * become ready in the same turn, which would block the event loop.
   */
  startTurn(): Promise<void> {
    return this.#turn = this.#turn.then(() => new Promise((resolve) => void setImmediate(resolve)));
  }

  /**
   * Adds a job. The caller must do this before the start of the command, because its processes carry the mark from the
   * beginning.
   */
  addJob(cookie: string): JobTableEntry {
    const job: JobTableEntry = { cookie, pid: null, startTicks: 0, endOrder: 0 };
    this.#jobs.set(cookie, job);
    return job;
  }

  /**
   * Records that the job's command was started. The caller must do this in the same turn of the event loop as the
   * start.
   */
  markStarted(job: JobTableEntry, pid: number): void {
    job.pid = pid;
    job.startTicks = readProcess(pid)?.startTicks ?? 0;
  }

  /** Records that the command itself has ended. Processes that it started may still run. */
  markEnded(job: JobTableEntry): void {
    job.endOrder = ++this.#ends;
    this.#notify();
  }

  /** Removes a job that has no processes left, or whose processes baton no longer waits for. */
  removeJob(job: JobTableEntry): void {
    if (this.#jobs.get(job.cookie) === job) this.#jobs.delete(job.cookie);
    this.#notify();
  }

  processesOf(job: JobTableEntry, libc: Libc): CommandProcesses {
    return new SharedJobProcesses(this, job, libc);
  }

  /** Calls the listener whenever a job ends. Returns the function that unsubscribes. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Reaps dead orphans. Returns the jobs that each descendant of this process belongs to. Skips baton's own helpers and
   * their descendants.
   */
  scan(libc: Libc): JobTableSnapshot {
    const observed: ObservedProcess[] = [];
    const gone: number[] = [];
    const below = reapAndListDescendants(libc, (child) => isOwnHelperProcess(child) || isBatonServiceProcess(child));
    for (const pid of below) {
      const row = readProcessOrUnknown(pid);
      if (row === "unknown") observed.push(unreadableProcess(pid, parentAmong(below, pid)));
      else if (row === null || row.dead) gone.push(pid);
      else observed.push({ ...row, cookies: this.#isCertain(row) ? [] : readProcessCookies(pid) });
    }
    const owners = attributeProcesses(observed, [...this.#jobs.values()], this.#known);
    this.#known = owners;
    return { owners, gone };
  }

  /**
   * Returns true if this job must end a process that belongs to one of the jobs in `possible`. The job that ends last
   * must do so.
   */
  isLastOf(job: JobTableEntry, possible: ReadonlySet<string>): boolean {
    return job.endOrder > 0 && [...possible].every((cookie) => {
      const other = this.#jobs.get(cookie);
      return other === undefined || (other.endOrder > 0 && other.endOrder <= job.endOrder);
    });
  }

  /**
   * Reaps dead orphans. Returns the living orphans that belong, or may belong, to the job. The caller calls this from
   * time to time.
   */
  reapOrphans({ cookie }: JobTableEntry, libc: Libc): number[] {
    if (performance.now() >= this.#reapedAtMs + reapEveryMs) {
      this.#reapedAtMs = performance.now();
      const orphans = listLivingOrphans(libc);
      const owners = orphans.length === 0 ? this.#known : this.scan(libc).owners;
      this.#orphans = orphans.map((pid) => [pid, owners.get(pid)]);
    }
    return this.#orphans.filter(([, owners]) => owners?.certain.has(cookie) || owners?.possible.has(cookie))
      .map(([pid]) => pid);
  }

  /** Returns true if the owner of a process is already certain, so that its environment need not be read again. */
  #isCertain({ pid, startTicks }: ProcessRow): boolean {
    const known = this.#known.get(pid);
    return known !== undefined && known.startTicks === startTicks && known.certain.size > 0;
  }

  /** Calls the listeners, but only after the current call, which handles the end. */
  #notify(): void {
    for (const listener of [...this.#listeners]) queueMicrotask(listener);
  }
}

/**
 * Describes a process that /proc does not describe: only its parent is known. The process counts as started after every
 * job.
 */
function unreadableProcess(pid: number, parent: number): ObservedProcess {
  return { pid, parent, group: 0, session: 0, startTicks: Infinity, cookies: [] };
}

function parentAmong(pids: readonly number[], child: number): number {
  return pids.find((pid) => listChildProcesses(pid).includes(child)) ?? processSystem.pid;
}

/**
 * The processes of one of several jobs, in a process that adopts orphans. In other processes, `JobProcesses` finds
 * them.
 */
class SharedJobProcesses extends CommandProcesses {
  readonly #table: JobTable;
  readonly #job: JobTableEntry;
  readonly #libc: Libc;
  #claims = false;
  #last: JobTableSnapshot = { owners: new Map(), gone: [] };

  constructor(table: JobTable, job: JobTableEntry, libc: Libc) {
    const { pid, cookie } = job;
    if (pid === null) throw new Error("the job was never started");
    super({ pid, ownGroup: true, cookie });
    this.#table = table;
    this.#job = job;
    this.#libc = libc;
  }

  override commandEnded(): void {
    super.commandEnded();
    this.#table.markEnded(this.#job);
  }

  /**
   * Sends a signal to all living processes of the job. Suspends and resumes also processes that may belong to this job,
   * because these two signals can be undone.
   */
  override signalAll(signal: NodeJS.Signals, options?: { readonly isRepeated?: boolean }): void {
    super.signalAll(signal, options);
    if (signal === "SIGSTOP" || signal === "SIGCONT") {
      for (const pid of this.#doubtfulPids()) {
        sendSignal(pid, signal);
      }
    }
  }

  /**
   * Returns true if the last `alive()` found a process that may belong to this job, and that another job may have to
   * end.
   */
  override isUndecided(): boolean {
    return this.#doubtfulPids().length > 0;
  }

  override claimUndecided(): void {
    this.#claims = true;
  }

  override subscribe(listener: () => void): () => void {
    return this.#table.subscribe(listener);
  }

  reapOrphans(): readonly number[] {
    return this.#table.reapOrphans(this.#job, this.#libc);
  }

  protected find(): { alive: readonly number[]; isCertain: boolean } {
    const find = () => {
      this.#last = this.#table.scan(this.#libc);
      return [...this.#ownPids(), ...this.#last.gone];
    };
    return { alive: findLivingProcesses(find, isProcessAlive), isCertain: true };
  }

  #ownPids(): number[] {
    const { cookie } = this.#job;
    return [...this.#last.owners].filter(([, { certain, possible }]) =>
      certain.has(cookie) || (possible.has(cookie) && (this.#claims || this.#table.isLastOf(this.#job, possible)))
    ).map(([pid]) => pid);
  }

  #doubtfulPids(): number[] {
    const own = new Set(this.#ownPids());
    return [...this.#last.owners].filter(([pid, { possible }]) => possible.has(this.#job.cookie) && !own.has(pid))
      .map(([pid]) => pid);
  }
}
