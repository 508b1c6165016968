/**
 * The guard's state, and when it kills: pure functions of the lines that baton sends. A line is a message of words with
 * spaces between them. Deadlines are milliseconds on the machine's boot clock, so a line that the guard reads late does
 * not move a deadline. Each job has a cookie.
 *
 *   watch COOKIE DEADLINE [NODE…]
 *                             watch this job from now on; NODE: a path of its lock on the server, encoded as in a URL
 *   child COOKIE PID own|shared|script TICKS
 *                             the command runs, in a process group of its own or in another program's, or it is a
 *                             script that has asked for the lock; TICKS: its start time as in /proc/PID/stat, 0 if
 *                             unknown
 *   renew COOKIE DEADLINE     the end of the lease has moved
 *   known COOKIE PID:TICKS…   processes of the job that a guard may not find: orphans, unstoppable processes
 *   left COOKIE               baton gives up stopping the job, and ends: the session must not be ended
 *   forget COOKIE             all processes of this job are dead
 *   session PID HANDLE        the session of process PID, which the jobs run under; HANDLE describes it. One at a time;
 *                             without words: there is none, or it is left to expire
 *   ask                       the guard writes "runs"
 *   done                      nothing is left to watch; the guard ends
 *
 * When a deadline passes, the guard kills that job. When the pipe ends without a "done", it kills every job that it has
 * not forgotten.
 */
import type { ProcessIdentity } from "../proc/process_table.ts";

export interface GuardedChild {
  readonly pid: number;
  readonly ownGroup: boolean;
  /** True for a script that holds its lock by `baton hold`, and is older than baton's process. */
  readonly isScript?: boolean;
  readonly startTicks: number;
}

export interface GuardedJob {
  readonly child: GuardedChild | null;
  readonly deadlineMs: number;
  readonly nodes: readonly string[];
  /** Processes of the job that the guard may not find by itself. */
  readonly known: readonly ProcessIdentity[];
  readonly isLeft: boolean;
}

export interface GuardedSession {
  /** The baton process that has the session and has started the guard. */
  readonly owner: number;
  /** The argument of `endSessionOfDeadProcess`. It is a secret. */
  readonly handle: string;
}

export interface GuardState {
  readonly jobs: ReadonlyMap<string, GuardedJob>;
  readonly session: GuardedSession | null;
  readonly done: boolean;
}

/** The state in which no job is watched: when the pipe ends, the guard ends and kills nothing. */
export const idleGuardState: GuardState = { jobs: new Map(), session: null, done: false };

/** Returns the state after a line from baton. An unknown line changes nothing. */
export function readGuardLine(state: GuardState, line: string): GuardState {
  const [verb, cookie = "", second = "", third = "", fourth = ""] = line.split(" ");
  const job = state.jobs.get(cookie);
  switch (verb) {
    case "watch":
      return withJob(state, cookie, {
        child: null,
        deadlineMs: parseDeadline(second),
        known: [],
        isLeft: false,
        nodes: line.split(" ").slice(3).map(decodeURIComponent),
      });
    case "child":
      if (job === undefined) return state;
      return withJob(state, cookie, {
        ...job,
        child: {
          pid: Number(second),
          ownGroup: third === "own",
          ...third === "script" && { isScript: true },
          startTicks: Number(fourth),
        },
      });
    case "renew":
      return job === undefined ? state : withJob(state, cookie, { ...job, deadlineMs: parseDeadline(second) });
    case "known":
      return job === undefined ? state : withJob(state, cookie, { ...job, known: identitiesOf(line) });
    case "left":
      return job === undefined ? state : withJob(state, cookie, { ...job, isLeft: true });
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

export function overdueGuardedJobs(state: GuardState, nowMs: number): string[] {
  return [...state.jobs].filter(([, job]) => nowMs >= job.deadlineMs).map(([cookie]) => cookie);
}

/** Facts that the guard can find out after the pipe has ended and it has killed all jobs. */
export interface GuardSessionEndFacts {
  /** Returns true if the process is dead: it can neither start another process nor hold a lock. */
  readonly isGone: (pid: number) => boolean;
  readonly isCleared: (cookie: string) => boolean;
}

/**
 * Returns the session that the guard may end; null if the session must expire by itself. The guard knows all jobs of
 * the session, because baton reports a job before it starts the job.
 */
export function chooseGuardSessionToEnd(
  { jobs, session, done }: GuardState,
  after: GuardSessionEndFacts,
): GuardedSession | null {
  if (done || session === null || !after.isGone(session.owner)) return null;
  if ([...jobs.values()].some(({ isLeft }) => isLeft)) return null;
  return [...jobs.keys()].every((cookie) => after.isCleared(cookie)) ? session : null;
}

export function guardWatchLine(cookie: string, deadlineMs: number, nodes: readonly string[] = []): string {
  return `${["watch", cookie, Math.floor(deadlineMs), ...nodes.map(encodeURIComponent)].join(" ")}\n`;
}

export function guardChildLine(cookie: string, { pid, ownGroup, isScript, startTicks }: GuardedChild): string {
  const kind = isScript === true ? "script" : ownGroup ? "own" : "shared";
  return `child ${cookie} ${pid} ${kind} ${startTicks}\n`;
}

export function guardRenewLine(cookie: string, deadlineMs: number): string {
  return `renew ${cookie} ${Math.floor(deadlineMs)}\n`;
}

export const guardAliveQuestionLine = "ask\n";

export function guardKnownProcessesLine(cookie: string, known: readonly ProcessIdentity[]): string {
  return `${["known", cookie, ...known.map(({ pid, startTicks }) => `${pid}:${startTicks}`)].join(" ")}\n`;
}

export function guardGiveUpLine(cookie: string): string {
  return `left ${cookie}\n`;
}

export function guardForgetLine(cookie: string): string {
  return `forget ${cookie}\n`;
}

export function guardSessionLine(session: GuardedSession | null): string {
  return session === null ? "session\n" : `session ${session.owner} ${session.handle}\n`;
}

function identitiesOf(line: string): ProcessIdentity[] {
  return line.split(" ").slice(2).map((word) => {
    const [pid, startTicks] = word.split(":").map(Number);
    return { pid: pid ?? 0, startTicks: startTicks ?? 0 };
  });
}

function withJob(state: GuardState, cookie: string, job: GuardedJob | null): GuardState {
  const jobs = new Map(state.jobs);
  if (job === null) jobs.delete(cookie);
  else jobs.set(cookie, job);
  return { ...state, jobs };
}

/** Parses a deadline. If it is not a number, the deadline counts as passed, because killing too early is safe. */
function parseDeadline(word: string): number {
  const milliseconds = word === "" ? NaN : Number(word);
  return Number.isFinite(milliseconds) ? milliseconds : 0;
}
