/**
 * The exit codes of baton, and the exit code of each error code. The compiler rejects an error code without an exit
 * code.
 */
import type { ErrorCode } from "./errors.ts";

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

/** A number from 0 to 255: an exit code of `exitCodes`, of the user's command, or of the user's choice (-E). */
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
