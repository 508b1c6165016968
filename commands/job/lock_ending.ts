/** How a supervised command ended, as an exit code, a word for the status report and a sentence. Pure. */
import type { ChildEnd, ChildOutcome } from "../../src/process/spawn/child_outcome.ts";
import { formatDuration } from "../../src/support/duration.ts";
import { type ErrorCode, messageOf } from "../../src/errors.ts";
import { type ExitCode, exitCodeOf } from "../exit_codes.ts";

export interface LockEnding {
  readonly exitCode: ExitCode;
  /** For the status report: command_exited, command_signaled, or a failure's code in small letters. */
  readonly reason: string;
  /** For stderr; null when the child's own ending says it all. */
  readonly message: string | null;
}

export interface EndingFacts {
  /** As the messages call it. */
  readonly what: string;
  /** "Lock" when left out. */
  readonly thing?: string;
  /** Why the lock was lost, where that is known. */
  readonly lost: AbortSignal;
  readonly maxHoldMs: number | undefined;
  /** It was no child, and nobody knows how it ended. */
  readonly isScript?: boolean;
}

/** Null when no child was started because of a request to stop. */
export function lockEndingOf(outcome: ChildOutcome, facts: EndingFacts): LockEnding | null {
  const { what, thing = "Lock" } = facts;
  switch (outcome.kind) {
    case "exited":
      return { exitCode: outcome.code, reason: "command_exited", message: null };
    case "signaled":
      return { exitCode: 128 + outcome.signalNumber, reason: "command_signaled", message: null };
    case "unreadable":
      return failure("INTERNAL", `The command under ${what} has ended, and how is not known: ${outcome.why}`);
    case "lost":
      return failure(
        "LOCK_LOST",
        `${why(facts) ?? `${thing} ${what} is lost: no server responded in time`}; ${fate(outcome.child, facts)}`,
      );
    case "revoked":
      return failure("REVOKED", `${why(facts) ?? `${thing} ${what} was revoked`}; ${fate(outcome.child, facts)}`);
    case "time_limit": {
      const limit = formatDuration(facts.maxHoldMs ?? 0);
      return failure(
        "TIME_LIMIT",
        `The ${jobOf(facts)} held ${what} for longer than ${limit} (--max-hold) and was stopped`,
      );
    }
    case "breach": {
      const pids = outcome.survivors.length === 0 ? "" : ` (still there: ${outcome.survivors.join(", ")})`;
      const danger = "others may get the lock while it runs";
      return failure(
        "FENCE_BREACH",
        `The ${jobOf(facts)} under ${what} could not be confirmed dead in time${pids}; ${danger}`,
      );
    }
    case "not_found":
      return failure("COMMAND_NOT_FOUND", outcome.message);
    case "not_executable":
      return failure("NOT_EXECUTABLE", outcome.message);
    case "start_failed":
      return failure("START_FAILED", outcome.message);
    case "cancelled":
      return null;
  }
}

function failure(code: ErrorCode, message: string): LockEnding {
  return { exitCode: exitCodeOf(code), reason: code.toLowerCase(), message };
}

function why({ lost }: EndingFacts): string | null {
  return lost.aborted ? messageOf(lost.reason) : null;
}

function jobOf({ isScript = false }: EndingFacts): string {
  return isScript ? "script" : "command";
}

function fate(child: ChildEnd | null, { isScript = false }: EndingFacts): string {
  if (isScript) return child === null ? "the script was not told that it had it" : "the script was stopped";
  if (child === null) return "the command did not run";
  if (child.kind === "unreadable") return `the command was stopped, and how it ended is not known (${child.why})`;
  const how = child.kind === "exited" ? `and exited with ${child.code}` : `by ${child.signal}`;
  return `the command was stopped ${how}`;
}
