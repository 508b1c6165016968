/**
 * Whose processes these are, where one baton supervises several jobs at once and takes in what outlives their commands.
 * Pure: a snapshot in, owners out.
 *
 * A process is a job's when it is or descends from the job's command, is in its session or process group, or carries its
 * cookie; once known to be a job's it stays so. What shows none of this (a daemon that has left its session, cleared its
 * environment, and lost its parents) may be any job's that was there when it was started.
 */

export interface SeenProcess {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** Clock ticks from boot to the start. */
  readonly startTicks: number;
  readonly cookies: readonly string[];
}

export interface SeenJob {
  readonly cookie: string;
  /** The command's process, which leads a session and a group of this number; null as long as it is not started. */
  readonly pid: number | null;
  /** Of the command's process: nothing of the job is older. 0 when not known. */
  readonly startTicks: number;
}

/** Whose a process is: by their cookies. Nobody's when both are empty: then it is older than every job. */
export interface Owners {
  readonly startTicks: number;
  /** It is a process of every one of these. */
  readonly certain: ReadonlySet<string>;
  /** It belongs to one of these; empty where something is certain. */
  readonly possible: ReadonlySet<string>;
}

const nobody: ReadonlySet<string> = new Set();

/**
 * The owners of each process, by pid. `processes` are all below baton, parents before their children; `known` is what was
 * found the last time.
 */
export function attributeProcesses(
  processes: readonly SeenProcess[],
  jobs: readonly SeenJob[],
  known: ReadonlyMap<number, Owners>,
): Map<number, Owners> {
  const found = new Map<number, Owners>();
  const live = new Set(jobs.map((job) => job.cookie));
  for (const process of processes) {
    const { pid, parent, startTicks } = process;
    const before = known.get(pid)?.startTicks === startTicks ? known.get(pid) : undefined;
    const above = found.get(parent);
    const certain = new Set([
      ...marksOf(process, jobs),
      ...[...before?.certain ?? [], ...above?.certain ?? []].filter((cookie) => live.has(cookie)),
    ]);
    const guessed = before?.possible ?? above?.possible ?? jobsAt(startTicks, jobs);
    const possible = certain.size > 0 ? nobody : new Set([...guessed].filter((cookie) => live.has(cookie)));
    // Of one that may be one job's only it is certain.
    found.set(
      pid,
      possible.size === 1 ? { startTicks, certain: possible, possible: nobody } : { startTicks, certain, possible },
    );
  }
  return found;
}

function marksOf(process: SeenProcess, jobs: readonly SeenJob[]): string[] {
  const { pid, group, session, startTicks, cookies } = process;
  return jobs.filter((job) =>
    cookies.includes(job.cookie) ||
    // Its number may have been another's before: nothing of the job is older than its command.
    (job.pid !== null && [pid, group, session].includes(job.pid) && startTicks >= job.startTicks)
  ).map((job) => job.cookie);
}

function jobsAt(ticks: number, jobs: readonly SeenJob[]): Set<string> {
  return new Set(jobs.filter((job) => job.pid !== null && job.startTicks <= ticks).map((job) => job.cookie));
}
