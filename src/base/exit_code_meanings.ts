/** The meanings of the exit codes, for `baton help exit-codes` and the manual. */
import { type ExitCodeName, exitCodes } from "./exit_codes.ts";

const meanings: Readonly<Record<ExitCodeName, string>> = {
  SUCCESS: "success",
  FALSE: "the result of a check is no, or the named object does not exist: " +
    "the lock is free, there is no message, this is not the leader",
  USAGE: "the command line is invalid",
  BAD_DATA: "invalid input data: a message is too large, a counter was used again",
  UNREACHABLE: "no server responded, and nothing was done; " +
    "for retry-processor run --once, --until-empty: a dead letter was not delivered",
  INTERNAL: "internal error: a bug in baton, or a server that violates the protocol",
  CANNOT_CREATE: "a file or socket could not be created",
  IO: "local input or output failed, also results or a status report that could not be written; " +
    "for retry-processor call --url: the request was accepted, and its response is incomplete",
  BUSY: "busy (-n), or the wait timed out (-w); lock -E sets another code; " +
    "for retry-processor call: failed, and stored for a retry",
  OUTCOME_UNKNOWN:
    "the outcome is unknown: a change was requested, and no response arrived; baton lock never exits with this code",
  REFUSED: "access denied by an ACL, by authentication, or by the permissions of a socket",
  CONFIG: "invalid or conflicting configuration: a file, a value, a limit or a scope",
  LOST: "the lock or the leadership was lost; the command was stopped in time",
  REVOKED: "broken, preempted, or resigned on request",
  SKIPPED: "skipped: another call does the work, or no tick of the schedule is due; lock -E sets another code",
  BARRIER_BROKEN: "the barrier is broken: a member was lost before the start",
  FENCE_BREACH: "baton could not confirm before the end of the lease that all processes of the command are dead",
  FENCED: "another session of this client ID took over",
  STORE_FULL: "the store is full: a limit was reached",
  STALE_TOKEN: "the fencing token is stale: the lock was granted to another holder since",
  ITEM_FAILED:
    "an item of a pool failed; the others were run, as xargs does; baton prints which, and --joblog stores it",
  TIME_LIMIT: "the command ran longer than --max-hold",
  START_FAILED: "the command could not be started",
  NOT_EXECUTABLE: "the command is not executable",
  COMMAND_NOT_FOUND: "the command was not found",
};

/** The meaning of the exit code 128 + n. */
const signalMeaning =
  "signal n ended the command; after HUP, INT, QUIT, PIPE and TERM baton itself ends by the signal, " +
  "which shells show as this number";

/** Returns the exit codes and what they mean, in the order of the numbers. */
export function listExitCodeMeanings(): { term: string; meaning: string }[] {
  const names = Object.keys(meanings) as ExitCodeName[];
  const own = names.map((name) => ({ term: String(exitCodes[name]), meaning: meanings[name] }));
  return [...own, { term: "128+n", meaning: signalMeaning }];
}
