/**
 * Decides which jobs own a process when one baton supervises several jobs and adopts their orphans. Pure.
 *
 * A job owns its command, the command's descendants, the processes in its session or process group, and the processes
 * that carry its mark. Once an owner is certain, it does not change. A process without any of these signs is a daemon
 * that has left its session, cleared its environment and lost its parents. It may belong to any job that ran when it
 * was started.
 */
import type { ProcessRow } from "./process_table.ts";

export interface ObservedProcess extends Pick<ProcessRow, "pid" | "parent" | "group" | "session" | "startTicks"> {
  readonly cookies: readonly string[];
}

export interface ObservedJob {
  readonly cookie: string;
  /** The pid of the command, which is also the number of its session and group; null until the command is started. */
  readonly pid: number | null;
  /** The start of the command, in clock ticks since boot; 0 if unknown. No process of the job is older than this. */
  readonly startTicks: number;
}

/** The jobs that own a process, by their cookies. A process that no job owns is older than every job. */
export interface ProcessOwners {
  readonly startTicks: number;
  readonly certain: ReadonlySet<string>;
  /** The jobs of which one owns the process. Empty if `certain` is not empty. */
  readonly possible: ReadonlySet<string>;
}

const noOwners: ReadonlySet<string> = new Set();

/**
 * Returns the owners of each process, by pid. `processes` must contain all descendants of baton, parents first; `known`
 * is the previous result.
 */
export function attributeProcesses(
  processes: readonly ObservedProcess[],
  jobs: readonly ObservedJob[],
  known: ReadonlyMap<number, ProcessOwners>,
): Map<number, ProcessOwners> {
  const found = new Map<number, ProcessOwners>();
  const live = new Set(jobs.map((job) => job.cookie));
  for (const process of processes) {
    const { pid, parent, startTicks } = process;
    const before = known.get(pid)?.startTicks === startTicks ? known.get(pid) : undefined;
    const above = found.get(parent);
    const certain = new Set([
      ...provenOwners(process, jobs),
      ...[...before?.certain ?? [], ...above?.certain ?? []].filter((cookie) => live.has(cookie)),
    ]);
    const guessed = before?.possible ?? above?.possible ?? jobsRunningAt(startTicks, jobs);
    const possible = certain.size > 0 ? noOwners : new Set([...guessed].filter((cookie) => live.has(cookie)));
    // If only one job is a possible owner, that job is certain.
    found.set(
      pid,
      possible.size === 1 ? { startTicks, certain: possible, possible: noOwners } : { startTicks, certain, possible },
    );
  }
  return found;
}

function provenOwners(process: ObservedProcess, jobs: readonly ObservedJob[]): string[] {
  const { pid, group, session, startTicks, cookies } = process;
  return jobs.filter((job) =>
    cookies.includes(job.cookie) ||
    // An older process had this number before the command: no process of the job is older than its command.
    (job.pid !== null && [pid, group, session].includes(job.pid) && startTicks >= job.startTicks)
  ).map((job) => job.cookie);
}

function jobsRunningAt(ticks: number, jobs: readonly ObservedJob[]): Set<string> {
  return new Set(jobs.filter((job) => job.pid !== null && job.startTicks <= ticks).map((job) => job.cookie));
}
