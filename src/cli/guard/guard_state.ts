/**
 * What the guard knows and when it strikes: a pure reading of the lines baton sends. One line is one message, words
 * separated by spaces; deadlines travel as the milliseconds that remain, since the two processes count from different
 * moments.
 *
 *   watch COOKIE REMAINING    from now on; answered by "watching"
 *   child PID own|shared TICKS  the command runs, leading a process group of its own or as a member of baton's; TICKS:
 *                             its start as in /proc/PID/stat, 0 where there is no such thing
 *   renew REMAINING           the lease end has moved
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
export function readGuardLine(state: GuardState, line: string, nowMs: number): GuardState {
  const [verb, first = "", second = "", third = ""] = line.split(" ");
  switch (verb) {
    case "watch":
      return { ...state, cookie: first, deadlineMs: nowMs + remaining(second) };
    case "child":
      return { ...state, child: { pid: Number(first), ownGroup: second === "own", startTicks: Number(third) } };
    case "renew":
      return { ...state, deadlineMs: nowMs + remaining(first) };
    case "done":
      return { ...state, done: true };
    default:
      return state;
  }
}

export function watchLine(cookie: string, remainingMs: number): string {
  return `watch ${cookie} ${Math.floor(remainingMs)}\n`;
}

export function childLine(child: GuardedChild): string {
  return `child ${child.pid} ${child.ownGroup ? "own" : "shared"} ${child.startTicks}\n`;
}

export function renewLine(remainingMs: number): string {
  return `renew ${Math.floor(remainingMs)}\n`;
}

/** What cannot be read is no time at all: to strike too early is safe. */
function remaining(word: string): number {
  const milliseconds = word === "" ? NaN : Number(word);
  return Number.isFinite(milliseconds) ? milliseconds : 0;
}
