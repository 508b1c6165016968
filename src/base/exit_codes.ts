/**
 * The exit codes of baton, and the exit code of each error code. The compiler rejects an error code without an exit
 * code.
 */
import type { ErrorCode } from "./errors.ts";

/** The exit codes and their meanings, which `baton help exit-codes` prints. */
export const exitCodeTable = {
  SUCCESS: [0, "success"],
  FALSE: [
    1,
    "the result of a check is no, or the named object does not exist: " +
    "the lock is free, there is no message, this is not the leader",
  ],
  USAGE: [64, "the command line is invalid"],
  BAD_DATA: [65, "invalid input data: a message is too large, a counter was used again"],
  UNREACHABLE: [
    69,
    "no server responded, and nothing was done; " +
    "for retry-processor run --once, --until-empty: a dead letter was not delivered",
  ],
  INTERNAL: [70, "internal error: a bug in baton, or a server that violates the protocol"],
  CANNOT_CREATE: [73, "a file or socket could not be created"],
  IO: [
    74,
    "local input or output failed, also results or a status report that could not be written; " +
    "for retry-processor call --url: the request was accepted, and its response is incomplete",
  ],
  BUSY: [
    75,
    "busy (-n), or the wait timed out (-w); -E sets another code; " +
    "for retry-processor call: failed, and stored for a retry",
  ],
  OUTCOME_UNKNOWN: [
    76,
    "the outcome is unknown: a change was requested, and no response arrived; baton lock never exits with this code",
  ],
  REFUSED: [77, "access denied by an ACL, by authentication, or by the permissions of a socket"],
  CONFIG: [78, "invalid or conflicting configuration: a file, a value, a limit or a scope"],
  LOST: [79, "the lock or the leadership was lost; the command was stopped in time"],
  REVOKED: [80, "broken, preempted, or resigned on request"],
  SKIPPED: [81, "skipped: another call does the work, or no tick of the schedule is due; -E sets another code"],
  BARRIER_BROKEN: [82, "the barrier is broken: a member was lost before the start"],
  FENCE_BREACH: [83, "baton could not confirm before the end of the lease that all processes of the command are dead"],
  FENCED: [84, "another session of this client ID took over"],
  STORE_FULL: [85, "the store is full: a limit was reached"],
  STALE_TOKEN: [86, "the fencing token is stale: the lock was granted to another holder since"],
  ITEM_FAILED: [
    123,
    "an item of a pool failed; the others were run, as xargs does; baton prints which, and --joblog stores it",
  ],
  TIME_LIMIT: [124, "the command ran longer than --max-hold"],
  START_FAILED: [125, "the command could not be started"],
  NOT_EXECUTABLE: [126, "the command is not executable"],
  COMMAND_NOT_FOUND: [127, "the command was not found"],
} as const;

/** The meaning of the exit code 128 + n. */
export const signalExitCodeMeaning =
  "signal n ended the command; after HUP, INT, QUIT, PIPE and TERM baton itself ends by the signal, " +
  "which shells show as this number";

export type ExitCodeName = keyof typeof exitCodeTable;

export const exitCodes = Object.fromEntries(
  Object.entries(exitCodeTable).map(([name, [code]]) => [name, code]),
) as { readonly [Name in ExitCodeName]: typeof exitCodeTable[Name][0] };

/** A number from 0 to 255: an exit code of `exitCodeTable`, of the user's command, or of the user's choice (-E). */
export type ExitCode = number;

/** The exit codes of errors whose exit code has another name than the error. */
const otherNames = {
  PROTOCOL: "INTERNAL",
  ZMTP_PROTOCOL: "INTERNAL",
  ZMTP_STATE: "INTERNAL",
  LOCK_BUSY: "BUSY",
  LOCK_TIMEOUT: "BUSY",
  BARRIER_TIMEOUT: "BUSY",
  LIMIT_MISMATCH: "CONFIG",
  SCOPE_MISMATCH: "CONFIG",
  SESSION_EXPIRED: "UNREACHABLE",
  CONNECTION_LOST: "UNREACHABLE",
  TICK_DONE_ELSEWHERE: "SKIPPED",
  TICK_NOT_DUE: "SKIPPED",
  TICK_SKIPPED: "SKIPPED",
  CLOCK_DISAGREES: "CONFIG",
  LOCK_LOST: "LOST",
  NOT_SUBSCRIBED: "USAGE",
  NOT_HELD: "FALSE",
  NOT_FOUND: "FALSE",
} as const satisfies Record<Exclude<ErrorCode, ExitCodeName>, ExitCodeName>;

/** Returns the exit code with which baton ends after an error. */
export function toExitCode(code: ErrorCode): ExitCode {
  return exitCodes[code in otherNames ? otherNames[code as keyof typeof otherNames] : code as ExitCodeName];
}
