/** The error codes of baton. src/base/exit_codes.ts assigns an exit code to each of them. */

export const errorCodes = [
  /** The command line, or an argument of a library call, is invalid. */
  "USAGE",
  /** Input data is malformed or exceeds a limit. */
  "BAD_DATA",
  /** No server responded, and nothing was done. */
  "UNREACHABLE",
  /** A bug in baton. */
  "INTERNAL",
  /** A peer violated the protocol. */
  "PROTOCOL",
  /** A peer violated the ZeroMQ protocol, or exceeded a limit that this side sets. */
  "ZMTP_PROTOCOL",
  /** The caller used a ZeroMQ socket in the wrong state, or after closing it. This is a bug of the caller. */
  "ZMTP_STATE",
  /** A file or socket could not be created. */
  "CANNOT_CREATE",
  /** Local input or output failed. */
  "IO",
  /** Another holder has the lock, and the caller does not want to wait. */
  "LOCK_BUSY",
  "LOCK_TIMEOUT",
  /** A request was sent, no response arrived, and the outcome could not be determined. */
  "OUTCOME_UNKNOWN",
  /** An ACL or the authentication denies access. */
  "REFUSED",
  /** A configuration file, a value or a server address is invalid. */
  "CONFIG",
  /** The stored limit of a lock differs from the requested one. */
  "LIMIT_MISMATCH",
  /** The scope of the lock is smaller than the requested one. */
  "SCOPE_MISMATCH",
  /** The servers ended the session: they received nothing from it during its timeout. */
  "SESSION_EXPIRED",
  /** No server responded in time. */
  "CONNECTION_LOST",
  /** Another process has run the tick of a schedule or runs it now, or the tick is settled. */
  "TICK_DONE_ELSEWHERE",
  "TICK_NOT_DUE",
  /** The tick is skipped, because the run of an earlier tick has not ended. */
  "TICK_SKIPPED",
  /** The clocks of this host and of the servers differ too much for a schedule. */
  "CLOCK_DISAGREES",
  /** The lock to release is not held. */
  "NOT_HELD",
  /** This process held the lock and has lost it. */
  "LOCK_LOST",
  /** An operator or a program revoked the lock. */
  "REVOKED",
  /** The wait for the members of a barrier, or for a gate, timed out. */
  "BARRIER_TIMEOUT",
  /** A member of a barrier was lost before the start. */
  "BARRIER_BROKEN",
  /** The fencing token is lower than one that was seen before. */
  "STALE_TOKEN",
  /** There is no such topic, or the publish/subscribe client is not subscribed to it. */
  "NOT_SUBSCRIBED",
  /** A newer session of the same publish/subscribe client has taken over. */
  "FENCED",
  /** A topic, or the disk of its server, has reached its limit. */
  "STORE_FULL",
  /** The lease ended before all processes of the command were confirmed dead. */
  "FENCE_BREACH",
  /** The command ran longer than allowed. */
  "TIME_LIMIT",
  "START_FAILED",
  "NOT_EXECUTABLE",
  /** The command to run was not found. */
  "COMMAND_NOT_FOUND",
  /** The condition that a check tests is false, or a condition of the request is not met, such as a node's version. */
  "FALSE",
  /** The given lock holder, leader, node, topic, client or message does not exist. */
  "NOT_FOUND",
] as const;

export type ErrorCode = (typeof errorCodes)[number];

/**
 * An error that baton throws intentionally. The message says what failed, with which value, and why. baton reports any
 * other error as INTERNAL, because it is a bug.
 */
export class BatonError extends Error {
  readonly code: ErrorCode;

  constructor(code: ErrorCode, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.name = "BatonError";
    this.code = code;
  }
}

/** Describes a failed system call by its reason and, in `form`, its path; without the names of the error and call. */
function describe(thrown: unknown, form: string): string {
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  const path = /^Path is a directory: rm returned EISDIR \(is a directory\) (.*)$/s.exec(message)?.[1];
  if (path !== undefined) return `${form.replace("PATH", path)}it is a folder`;
  return message.replace(
    /^E\w+: (.+?), \w+( '(.*)')?$/s,
    (_, reason, quoted, path) =>
      (quoted ? form.replace("PATH", path) : "") + (/^illegal /.test(reason) ? "it is a folder" : reason),
  );
}

/** Returns the message of a thrown value, which need not be an Error. */
export const errorMessage = (thrown: unknown): string => describe(thrown, "PATH: ");

/** Returns why a system call failed, for a message that names its path. */
export const systemCallErrorReason = (thrown: unknown): string => describe(thrown, "");

/** Returns the error name of a system call, such as "EPIPE"; undefined for other errors. */
export function errnoName(thrown: unknown): string | undefined {
  return (thrown as { code?: string }).code;
}
