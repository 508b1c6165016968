/**
 * What the guard knows and when it strikes: a pure reading of the lines baton sends. One line is one message, words
 * separated by spaces; deadlines travel as milliseconds on the machine's boot clock, which both processes read: a line
 * that is read late moves no deadline. Several jobs are watched at once, each known by its cookie.
 *
 *   watch COOKIE DEADLINE     from now on
 *   child COOKIE PID own|shared TICKS  the command runs, leading a process group of its own or as a member of baton's;
 *                             TICKS: its start as in /proc/PID/stat, 0 where there is no such thing
 *   renew COOKIE DEADLINE     the lease end has moved
 *   forget COOKIE             of this job nothing is left; others are watched on
 *   session PID HANDLE        whose end frees what the jobs hold: of the process PID, by what HANDLE says of it. There is one
 *                             at a time; without words there is none, or it is to expire
 *   done                      nothing is left to watch, and nothing will come
 *
 * A deadline that passes sets it on that job, the end of the pipe without a "done" on every job it has not forgotten.
 */

export interface GuardedChild {
  readonly pid: number;
  readonly ownGroup: boolean;
  readonly startTicks: number;
}

export interface GuardedJob {
  readonly child: GuardedChild | null;
  readonly deadlineMs: number;
}

export interface GuardedSession {
  /** The process whose session it is: baton, which started the guard. */
  readonly owner: number;
  /** As `endSession` takes it. A secret. */
  readonly handle: string;
}

export interface GuardState {
  /** By their cookies. */
  readonly jobs: ReadonlyMap<string, GuardedJob>;
  readonly session: GuardedSession | null;
  readonly done: boolean;
}

/** With nothing to watch: the end of the pipe then ends the guard and nothing else. */
export const idleGuard: GuardState = { jobs: new Map(), session: null, done: false };

/** A line the guard does not know changes nothing: it can only come from a broken baton, and the old deadline stands. */
export function readGuardLine(state: GuardState, line: string): GuardState {
  const [verb, cookie = "", second = "", third = "", fourth = ""] = line.split(" ");
  const job = state.jobs.get(cookie);
  switch (verb) {
    case "watch":
      return withJob(state, cookie, { child: null, deadlineMs: deadline(second) });
    case "child":
      if (job === undefined) return state;
      return withJob(state, cookie, {
        ...job,
        child: { pid: Number(second), ownGroup: third === "own", startTicks: Number(fourth) },
      });
    case "renew":
      return job === undefined ? state : withJob(state, cookie, { ...job, deadlineMs: deadline(second) });
    case "forget":
      return job === undefined ? state : withJob(state, cookie, null);
    case "session":
      return { ...state, session: second === "" ? null : { owner: Number(cookie), handle: second } };
    case "done":
      return { ...state, done: true };
    default:
      return state;
  }
}

/** The cookies of the jobs whose deadline has passed. */
export function overdueJobs(state: GuardState, nowMs: number): string[] {
  return [...state.jobs].filter(([, job]) => nowMs >= job.deadlineMs).map(([cookie]) => cookie);
}

/** What is known when the pipe has ended and everything was struck. */
export interface Aftermath {
  /** Nothing can be started, or held, by it any more. */
  readonly isGone: (pid: number) => boolean;
  /** Nothing of this job is left, for certain. */
  readonly isCleared: (cookie: string) => boolean;
}

/**
 * The session that may be ended, so that others need not wait until it expires; null to let it expire. Its owner has told
 * of each job before starting it: nothing else can be at work under it.
 */
export function sessionToEnd({ jobs, session, done }: GuardState, after: Aftermath): GuardedSession | null {
  if (done || session === null || !after.isGone(session.owner)) return null;
  return [...jobs.keys()].every((cookie) => after.isCleared(cookie)) ? session : null;
}

export function watchLine(cookie: string, deadlineMs: number): string {
  return `watch ${cookie} ${Math.floor(deadlineMs)}\n`;
}

export function childLine(cookie: string, child: GuardedChild): string {
  return `child ${cookie} ${child.pid} ${child.ownGroup ? "own" : "shared"} ${child.startTicks}\n`;
}

export function renewLine(cookie: string, deadlineMs: number): string {
  return `renew ${cookie} ${Math.floor(deadlineMs)}\n`;
}

export function forgetLine(cookie: string): string {
  return `forget ${cookie}\n`;
}

export function sessionLine(session: GuardedSession | null): string {
  return session === null ? "session\n" : `session ${session.owner} ${session.handle}\n`;
}

function withJob(state: GuardState, cookie: string, job: GuardedJob | null): GuardState {
  const jobs = new Map(state.jobs);
  if (job === null) jobs.delete(cookie);
  else jobs.set(cookie, job);
  return { ...state, jobs };
}

/** What cannot be read is over: to strike too early is safe. */
function deadline(word: string): number {
  const milliseconds = word === "" ? NaN : Number(word);
  return Number.isFinite(milliseconds) ? milliseconds : 0;
}
