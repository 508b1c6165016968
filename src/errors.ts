/** The closed list of failures baton can report. What number a failure exits with is decided in commands/exit_codes.ts alone. */

export const errorCodes = [
  /** The command line is wrong. */
  "USAGE",
  /** Input data is malformed or over a limit. */
  "BAD_DATA",
  /** No server answered; definitely nothing was done. */
  "UNREACHABLE",
  /** A bug in baton. */
  "INTERNAL",
  /** A peer broke the protocol. */
  "PROTOCOL",
  /** A peer broke ZeroMQ's protocol, or went over a limit of this side. */
  "ZMTP_PROTOCOL",
  /** A ZeroMQ socket was used out of turn, or after its end: a bug of whoever uses it. */
  "ZMTP_STATE",
  /** A message is for a ZeroMQ peer that is not connected. */
  "ZMTP_UNROUTABLE",
  /** A file or socket could not be created. */
  "CANNOT_CREATE",
  /** Local input or output failed. */
  "IO",
  /** Somebody else holds the lock and the caller did not want to wait. */
  "LOCK_BUSY",
  /** The wait for the lock expired. */
  "LOCK_TIMEOUT",
  /** A request was sent, its answer never came, and what happened could not be found out. */
  "OUTCOME_UNKNOWN",
  /** An ACL or an authentication refused it. */
  "REFUSED",
  /** A configuration file, value or place is not usable. */
  "CONFIG",
  /** A lock's stored limit differs from the one asked for. */
  "LIMIT_MISMATCH",
  /** The lock would not reach as far as the script demands. */
  "SCOPE_MISMATCH",
  /** The servers have ended the session: nothing was heard of it for its timeout. */
  "SESSION_EXPIRED",
  /** No server has answered for as long as was waited. */
  "CONNECTION_LOST",
  /** What is to be given back is not held. */
  "NOT_HELD",
  /** The lock was held and is no longer. */
  "LOCK_LOST",
  /** An operator, or a program, took the lock back. */
  "REVOKED",
  /** Not everybody of a barrier was there when the wait for them expired. */
  "BARRIER_TIMEOUT",
  /** A member of a barrier was lost before the start. */
  "BARRIER_BROKEN",
  /** A lower fencing token than one that was seen before. */
  "STALE_TOKEN",
  /** There is no such topic, or the publish/subscribe client is not subscribed to it. */
  "NOT_SUBSCRIBED",
  /** A newer session of the same publish/subscribe client took over. */
  "FENCED",
  /** A topic, or the disk of its server, has reached its limit. */
  "STORE_FULL",
  /** The child could not be confirmed dead before the lease ended. */
  "FENCE_BREACH",
  /** The command ran longer than allowed. */
  "TIME_LIMIT",
  /** The command could not be started. */
  "START_FAILED",
  /** The command is not executable. */
  "NOT_EXECUTABLE",
  /** The command to run was not found. */
  "COMMAND_NOT_FOUND",
  /** The answer is no, or a condition of the request is not met: the lock is free, the node has another version. */
  "FALSE",
  /** The lock holder, leader, node, topic, client or message that was named does not exist. */
  "NOT_FOUND",
] as const;

export type ErrorCode = (typeof errorCodes)[number];

/**
 * A failure with a row in the table above and a full sentence: what was tried, with which value, and what the state is.
 * Everything baton throws on purpose is one of these; anything else that surfaces is a bug and is reported as INTERNAL.
 */
export class BatonError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "BatonError";
    this.code = code;
  }
}

/** The text of whatever was thrown. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
