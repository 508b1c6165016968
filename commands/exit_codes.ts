/** The exit codes of baton, and the exit code of each error code. An error code without a row does not compile. */
import type { ErrorCode } from "../src/errors.ts";

export const exitCodes = {
  SUCCESS: 0,
  FALSE: 1,
  USAGE: 64,
  BAD_DATA: 65,
  UNREACHABLE: 69,
  INTERNAL: 70,
  CANNOT_CREATE: 73,
  IO: 74,
  BUSY: 75,
  OUTCOME_UNKNOWN: 76,
  REFUSED: 77,
  CONFIG: 78,
  LOST: 79,
  REVOKED: 80,
  SKIPPED: 81,
  BARRIER_BROKEN: 82,
  FENCE_BREACH: 83,
  FENCED: 84,
  STORE_FULL: 85,
  STALE_TOKEN: 86,
  ITEM_FAILED: 123,
  TIME_LIMIT: 124,
  START_FAILED: 125,
  NOT_EXECUTABLE: 126,
  COMMAND_NOT_FOUND: 127,
} as const;

export type ExitCodeName = keyof typeof exitCodes;

/** The meanings that `baton help exit-codes` prints. They are explained only here. */
export const exitCodeMeanings = {
  SUCCESS: "success",
  FALSE:
    "the result of a check is no, or the named object does not exist: the lock is free, there is no message, this is not the leader",
  USAGE: "the command line is invalid",
  BAD_DATA: "invalid input data: a message is too large, a counter was used again",
  UNREACHABLE:
    "no server responded, and nothing was done; for retry-processor run --once, --until-empty: a dead letter was not delivered",
  INTERNAL: "internal error: a bug in baton, or a server violates the protocol",
  CANNOT_CREATE: "a file or socket could not be created",
  IO: "local input or output failed",
  BUSY:
    "busy (-n), or the wait timed out (-w); -E sets another code; for retry-processor call: failed, and stored for a retry",
  OUTCOME_UNKNOWN:
    "the outcome is unknown: a change was requested and no response arrived; baton lock never exits with this code",
  REFUSED: "access denied by an ACL, by authentication, or by the permissions of a socket",
  CONFIG: "invalid or conflicting configuration: a file, a value, a limit or a scope",
  LOST: "the lock or the leadership was lost; the command was stopped in time",
  REVOKED: "revoked, preempted, or resigned on request",
  SKIPPED: "skipped, because another call does the work; -E sets another code",
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
} as const satisfies Record<ExitCodeName, string>;

/** A number from 0 to 255: one of the table, the exit code of a command, or one set by the user. */
export type ExitCode = number;

const exitCodeNames = {
  USAGE: "USAGE",
  BAD_DATA: "BAD_DATA",
  UNREACHABLE: "UNREACHABLE",
  INTERNAL: "INTERNAL",
  PROTOCOL: "INTERNAL",
  ZMTP_PROTOCOL: "INTERNAL",
  ZMTP_STATE: "INTERNAL",
  CANNOT_CREATE: "CANNOT_CREATE",
  IO: "IO",
  LOCK_BUSY: "BUSY",
  LOCK_TIMEOUT: "BUSY",
  OUTCOME_UNKNOWN: "OUTCOME_UNKNOWN",
  REFUSED: "REFUSED",
  CONFIG: "CONFIG",
  LIMIT_MISMATCH: "CONFIG",
  SCOPE_MISMATCH: "CONFIG",
  SESSION_EXPIRED: "UNREACHABLE",
  CONNECTION_LOST: "UNREACHABLE",
  NOT_HELD: "FALSE",
  LOCK_LOST: "LOST",
  REVOKED: "REVOKED",
  BARRIER_TIMEOUT: "BUSY",
  BARRIER_BROKEN: "BARRIER_BROKEN",
  STALE_TOKEN: "STALE_TOKEN",
  NOT_SUBSCRIBED: "USAGE",
  FENCED: "FENCED",
  STORE_FULL: "STORE_FULL",
  FENCE_BREACH: "FENCE_BREACH",
  TIME_LIMIT: "TIME_LIMIT",
  START_FAILED: "START_FAILED",
  NOT_EXECUTABLE: "NOT_EXECUTABLE",
  COMMAND_NOT_FOUND: "COMMAND_NOT_FOUND",
  FALSE: "FALSE",
  NOT_FOUND: "FALSE",
} as const satisfies Record<ErrorCode, ExitCodeName>;

/** The exit code of an error code. */
export function exitCodeOf(code: ErrorCode): ExitCode {
  return exitCodes[exitCodeNames[code]];
}
