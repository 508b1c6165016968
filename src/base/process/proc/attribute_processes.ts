/**
 * Decides which job owns which process when one baton supervises several jobs and adopts their orphans. Pure.
 *
 * A job owns its command, the command's descendants, the processes in its session or process group, and those that
 * carry its mark; an owner that was certain once stays so. A process without any of these (a daemon that has left its
 * session, cleared its environment and lost its parents) may belong to any job that existed when the process was
 * started.
 */
import type { ProcessRow } from "./process_table.ts";

export interface ObservedProcess extends Pick<ProcessRow, "pid" | "parent" | "group" | "session" | "startTicks"> {
  readonly cookies: readonly string[];
}

export interface ObservedJob {
  readonly cookie: string;
  /** The command's process, which leads a session and a group of this number; null until it is started. */
  readonly pid: number | null;
  /** The start of the command: no process of the job is older. 0 when not known. */
  readonly startTicks: number;
}

/** The jobs that own a process, by their cookies. A process without owners is older than every job. */
export interface ProcessOwners {
  readonly startTicks: number;
  /** The process belongs to each of these jobs. */
  readonly certain: ReadonlySet<string>;
  /** The process belongs to one of these jobs; empty if `certain` is not. */
  readonly possible: ReadonlySet<string>;
}

const noOwners: ReadonlySet<string> = new Set();

/**
 * Returns the owners of each process, by pid. Expects all descendants of baton, parents first, and in `known` the last
 * result.
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
    // A single possible owner is certain.
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
    // The number may have been another process's before: no process of the job is older than its command.
    (job.pid !== null && [pid, group, session].includes(job.pid) && startTicks >= job.startTicks)
  ).map((job) => job.cookie);
}

function jobsRunningAt(ticks: number, jobs: readonly ObservedJob[]): Set<string> {
  return new Set(jobs.filter((job) => job.pid !== null && job.startTicks <= ticks).map((job) => job.cookie));
}
