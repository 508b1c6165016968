/**
 * What the guard knows and when it strikes: a pure reading of the lines baton sends. One line is one message, words
 * separated by spaces; deadlines travel as milliseconds on the machine's boot clock, which both processes read: a line
 * that is read late moves no deadline.
 *
 *   watch COOKIE DEADLINE     from now on
 *   child PID own|shared TICKS  the command runs, leading a process group of its own or as a member of baton's; TICKS:
 *                             its start as in /proc/PID/stat, 0 where there is no such thing
 *   renew DEADLINE            the lease end has moved
 *   done                      nothing is left to watch
 */

export interface GuardedChild {
  readonly pid: number;
  readonly ownGroup: boolean;
  readonly startTicks: number;
}

export interface GuardState {
  readonly cookie: string | null;
  readonly child: GuardedChild | null;
  readonly deadlineMs: number;
  readonly done: boolean;
}

/** With nothing to watch: the end of the pipe then ends the guard and nothing else. */
export const idleGuard: GuardState = { cookie: null, child: null, deadlineMs: Infinity, done: false };

/** A line the guard does not know changes nothing: it can only come from a broken baton, and the old deadline stands. */
export function readGuardLine(state: GuardState, line: string): GuardState {
  const [verb, first = "", second = "", third = ""] = line.split(" ");
  switch (verb) {
    case "watch":
      return { ...state, cookie: first, deadlineMs: deadline(second) };
    case "child":
      return { ...state, child: { pid: Number(first), ownGroup: second === "own", startTicks: Number(third) } };
    case "renew":
      return { ...state, deadlineMs: deadline(first) };
    case "done":
      return { ...state, done: true };
    default:
      return state;
  }
}

export function watchLine(cookie: string, deadlineMs: number): string {
  return `watch ${cookie} ${Math.floor(deadlineMs)}\n`;
}

export function childLine(child: GuardedChild): string {
  return `child ${child.pid} ${child.ownGroup ? "own" : "shared"} ${child.startTicks}\n`;
}

export function renewLine(deadlineMs: number): string {
  return `renew ${Math.floor(deadlineMs)}\n`;
}

/** What cannot be read is over: to strike too early is safe. */
function deadline(word: string): number {
  const milliseconds = word === "" ? NaN : Number(word);
  return Number.isFinite(milliseconds) ? milliseconds : 0;
}
