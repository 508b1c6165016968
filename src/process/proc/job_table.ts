/**
 * The jobs that one baton supervises at the same time, and whose the processes below it are. Reads /proc and remembers what
 * it saw; what follows from it is attribute_processes.ts, who is signalled shared_job_processes.ts.
 */
import process from "node:process";
import { isOwnChild } from "../../support/own_children.ts";
import { allBelow, reapAdopted } from "./adopted_processes.ts";
import { attributeProcesses, type Owners, type SeenProcess } from "./attribute_processes.ts";
import type { Libc } from "../libc.ts";
import { childrenOf, cookiesOf, lookAtProcess, type ProcessRow, readProcess } from "./process_table.ts";
import { isServiceProcess } from "./service_process.ts";
import { SharedJobProcesses } from "./shared_job_processes.ts";

export interface TableJob {
  readonly cookie: string;
  /** Null until it is started. */
  pid: number | null;
  startTicks: number;
  /** Which command it was to end, counted from 1; 0 while it runs. */
  endedAs: number;
}

export interface Look {
  /** By pid. */
  readonly owners: ReadonlyMap<number, Owners>;
  /** Dead by now, or gone between being found and being looked at: they may have left children behind. */
  readonly gone: readonly number[];
}

/** Between two looks for orphans whose status nobody has taken, however many jobs ask for one. Milliseconds. */
const reapEveryMs = 1000;

export class JobTable {
  readonly #jobs = new Map<string, TableJob>();
  readonly #listeners = new Set<() => void>();
  #known: ReadonlyMap<number, Owners> = new Map();
  #ends = 0;
  #reapedAtMs = -Infinity;

  /** Before its command is started: what is started carries the cookie from its first moment. */
  open(cookie: string): TableJob {
    const job: TableJob = { cookie, pid: null, startTicks: 0, endedAs: 0 };
    this.#jobs.set(cookie, job);
    return job;
  }

  /** In the turn in which it was started. */
  started(job: TableJob, pid: number): void {
    job.pid = pid;
    job.startTicks = readProcess(pid)?.startTicks ?? 0;
  }

  /** Of a job that was started, as its run needs them. */
  processesOf(job: TableJob, libc: Libc): SharedJobProcesses {
    return new SharedJobProcesses({ table: this, job, libc });
  }

  /** The command itself has ended; what it started may run on. */
  ended(job: TableJob): void {
    job.endedAs = ++this.#ends;
    this.#tell();
  }

  /** Nothing of it is left, or nothing more can be done. */
  close(job: TableJob): void {
    if (this.#jobs.get(job.cookie) === job) this.#jobs.delete(job.cookie);
    this.#tell();
  }

  /** Hears of every end. Returns what takes the listener off. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Everything below this process, without its own helpers and what is below them. Orphans that have died are reaped. */
  look(libc: Libc): Look {
    const seen: SeenProcess[] = [];
    const gone: number[] = [];
    const below = allBelow(libc, (child) => isOwnChild(child) || isServiceProcess(child));
    for (const pid of below) {
      const row = lookAtProcess(pid);
      if (row === "unknown") seen.push(unreadable(pid, parentAmong(below, pid)));
      else if (row === null || row.dead) gone.push(pid);
      else seen.push({ ...row, cookies: this.#isCertain(row) ? [] : cookiesOf(pid) });
    }
    const owners = attributeProcesses(seen, [...this.#jobs.values()], this.#known);
    this.#known = owners;
    return { owners, gone };
  }

  /** Whether this job is the one to end a process that is one of theirs: the last of them to end. */
  isLastOf(job: TableJob, possible: ReadonlySet<string>): boolean {
    return job.endedAs > 0 && [...possible].every((cookie) => {
      const other = this.#jobs.get(cookie);
      return other === undefined || (other.endedAs > 0 && other.endedAs <= job.endedAs);
    });
  }

  /** Takes the status of orphans that were taken in and have died. Call it now and then. */
  reapOrphans(libc: Libc): void {
    if (performance.now() < this.#reapedAtMs + reapEveryMs) return;
    this.#reapedAtMs = performance.now();
    reapAdopted(libc);
  }

  /** What is known to be a job's stays so: its environment need not be read again. */
  #isCertain({ pid, startTicks }: ProcessRow): boolean {
    const known = this.#known.get(pid);
    return known !== undefined && known.startTicks === startTicks && known.certain.size > 0;
  }

  /** Not in the turn of the end: whoever ended is still at it. */
  #tell(): void {
    for (const listener of [...this.#listeners]) queueMicrotask(listener);
  }
}

/** Of one that /proc says nothing about only its parent is known, which lists it; it is taken for younger than every job. */
function unreadable(pid: number, parent: number): SeenProcess {
  return { pid, parent, group: 0, session: 0, startTicks: Infinity, cookies: [] };
}

function parentAmong(pids: readonly number[], child: number): number {
  return pids.find((pid) => childrenOf(pid).includes(child)) ?? process.pid;
}
