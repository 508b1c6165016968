/** The numbers baton exits with, and which failure gets which. A failure without a row does not compile. */
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
  TIME_LIMIT: 124,
  START_FAILED: 125,
  NOT_EXECUTABLE: 126,
  COMMAND_NOT_FOUND: 127,
} as const;

export type ExitCodeName = keyof typeof exitCodes;

/** What `baton help exit-codes` says of each; also the only place where they are explained. */
export const exitCodeMeanings = {
  SUCCESS: "success",
  FALSE: "no: the lock is free, there is no message, the named thing does not exist, this is not the leader",
  USAGE: "the command line is wrong",
  BAD_DATA: "bad data: a message is too large, a counter was used again",
  UNREACHABLE:
    "no server answered; definitely nothing was done; retry-processor run --once, --until-empty: a dead letter is not delivered",
  INTERNAL: "an internal error: a bug in baton, or a server that breaks the protocol",
  CANNOT_CREATE: "a file could not be created",
  IO: "local input or output failed",
  BUSY:
    "busy (-n), or the wait expired (-w), settable with -E; retry-processor call: failed, and stored to be tried again",
  OUTCOME_UNKNOWN:
    "the outcome is unknown: a change was asked for and its answer never came; not from baton lock, which finds out",
  REFUSED: "refused by an ACL, an authentication, or the permissions of a socket",
  CONFIG: "a configuration file, value, limit or scope does not fit",
  LOST: "the lock or the leadership was lost; the child was stopped in time",
  REVOKED: "revoked, pre-empted, or resigned by request",
  SKIPPED: "skipped, because it was done elsewhere; settable",
  BARRIER_BROKEN: "the barrier is broken: one of its members was lost before the start",
  FENCE_BREACH: "the child could not be confirmed dead before the lease ended",
  FENCED: "another session of this client id took over",
  STORE_FULL: "the store is full, over its limit",
  STALE_TOKEN: "the fencing token is stale: somebody was granted the lock since",
  TIME_LIMIT: "the child ran longer than --max-hold",
  START_FAILED: "the child could not be started",
  NOT_EXECUTABLE: "the command is not executable",
  COMMAND_NOT_FOUND: "the command was not found",
} as const satisfies Record<ExitCodeName, string>;

/** A number from 0 to 255: one of the table, the child's own, or one the user chose. */
export type ExitCode = number;

const exitCodeNames = {
  USAGE: "USAGE",
  BAD_DATA: "BAD_DATA",
  UNREACHABLE: "UNREACHABLE",
  INTERNAL: "INTERNAL",
  PROTOCOL: "INTERNAL",
  ZMTP_PROTOCOL: "INTERNAL",
  ZMTP_STATE: "INTERNAL",
  ZMTP_UNROUTABLE: "UNREACHABLE",
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

/** The number a failure exits with. */
export function exitCodeOf(code: ErrorCode): ExitCode {
  return exitCodes[exitCodeNames[code]];
}
