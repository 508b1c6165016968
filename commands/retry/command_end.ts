/** What the end of a tried command means: its code, as a shell counts it, and words for people. Pure. */
import type { ChildOutcome } from "../../src/process/spawn/child_outcome.ts";
import { formatDuration } from "../../src/support/duration.ts";
import { type ExitCode, exitCodes } from "../exit_codes.ts";

export interface CommandEnd {
  readonly code: ExitCode;
  /** "exited with 3": stands behind the command's name. */
  readonly how: string;
}

export function commandEndOf(outcome: ChildOutcome, timeoutMs: number): CommandEnd {
  switch (outcome.kind) {
    case "exited":
      return { code: outcome.code, how: `exited with ${outcome.code}` };
    case "signaled":
      return { code: 128 + outcome.signalNumber, how: `was ended by ${outcome.signal}` };
    case "time_limit":
      return { code: exitCodes.TIME_LIMIT, how: `ran longer than ${formatDuration(timeoutMs)} and was ended` };
    case "not_found":
      return { code: exitCodes.COMMAND_NOT_FOUND, how: `could not be run: ${outcome.message}` };
    case "not_executable":
      return { code: exitCodes.NOT_EXECUTABLE, how: `could not be run: ${outcome.message}` };
    case "start_failed":
      return { code: exitCodes.START_FAILED, how: `could not be started: ${outcome.message}` };
    case "unreadable":
      return { code: exitCodes.INTERNAL, how: `has ended, and how is not known: ${outcome.why}` };
    case "revoked":
      return { code: exitCodes.REVOKED, how: "was ended because baton was" };
    case "lost":
      return { code: exitCodes.LOST, how: "was ended because its lease was lost" };
    case "breach":
      return { code: exitCodes.FENCE_BREACH, how: "could not be confirmed dead" };
    case "cancelled":
      return { code: exitCodes.REVOKED, how: "was not begun" };
  }
}
