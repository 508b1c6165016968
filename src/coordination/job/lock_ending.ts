/**
 * Decides how a call of baton ends after its command: the exit code, the reason in the status report, and the message.
 * Pure.
 */
import type { ChildExitStatus, ChildOutcome, SupervisedChildEnding } from "../../base/process/spawn/child_outcome.ts";
import { formatDuration } from "../../base/support/duration.ts";
import { type ErrorCode, errorMessage } from "../../base/errors.ts";
import { type ExitCode, toExitCode } from "../../base/exit_codes.ts";

export interface LockEnding {
  readonly exitCode: ExitCode;
  /** The reason in the status report: command_exited, command_signaled, or an error code in lower case. */
  readonly reason: string;
  /** The message for stderr; null if the command ended by itself. */
  readonly message: string | null;
  /** The signal by which baton ends itself; null or undefined if baton exits with the code. */
  readonly signal?: NodeJS.Signals | null;
}

/**
 * The signals with which users and supervisors end a program. If such a signal has ended the command, baton ends itself
 * by the same signal. Otherwise a shell would not end its loop after Ctrl-C, and systemd would not count the end as
 * clean. After other signals (KILL, SEGV), baton exits with 128 + N for signal N, because its own death would look like
 * a bug of baton.
 */
export const mirroredSignals: readonly string[] = ["SIGHUP", "SIGINT", "SIGPIPE", "SIGQUIT", "SIGTERM"];

/** Returns the signal by which baton must end itself; null if baton exits with a code. */
export function signalToMirror(end: SupervisedChildEnding): NodeJS.Signals | null {
  return end.kind === "signaled" && mirroredSignals.includes(end.signal) ? end.signal as NodeJS.Signals : null;
}

export interface LockEndingFacts {
  readonly what: string;
  /** The kind of the lock in messages; "Lock" by default. */
  readonly kind?: string | undefined;
  /** The signal that aborts with the reason of the loss. */
  readonly lost: AbortSignal;
  /** The reason why no server responds, in parentheses; empty or undefined if a server responds. */
  readonly outage?: string | undefined;
  readonly maxHoldMs: number | undefined;
  /** Added to the message for a command that could not be started. */
  readonly startHint?: string;
  /** True if baton did not start the script. The script's exit status is then unknown. */
  readonly isScript?: boolean;
}

export const commandStartErrorCodes = {
  not_found: "COMMAND_NOT_FOUND",
  not_executable: "NOT_EXECUTABLE",
  start_failed: "START_FAILED",
} as const satisfies Record<string, ErrorCode>;

/** Decides how the call ends. Returns null if a request to stop came before the command was started. */
export function decideLockEnding(outcome: ChildOutcome, facts: LockEndingFacts): LockEnding | null {
  const { what, kind = "Lock" } = facts;
  switch (outcome.kind) {
    case "exited":
      return { exitCode: outcome.code, reason: "command_exited", message: null };
    case "signaled":
      return {
        exitCode: 128 + outcome.signalNumber,
        reason: "command_signaled",
        message: null,
        signal: signalToMirror(outcome),
      };
    case "unreadable":
      return failureEnding(
        "INTERNAL",
        `The command under ${what} has ended with an unknown exit status: ${outcome.why}`,
      );
    case "lost":
      return failureEnding(
        "LOCK_LOST",
        (lossReason(facts) ?? `${kind} ${what} is lost: no server responded in time${facts.outage ?? ""}`) +
          `; ${childStatus(outcome.child, facts)}`,
      );
    case "revoked":
      return failureEnding(
        "REVOKED",
        `${lossReason(facts) ?? `${kind} ${what} was given up`}; ${childStatus(outcome.child, facts)}`,
      );
    case "time_limit": {
      const limit = formatDuration(facts.maxHoldMs ?? 0);
      return failureEnding(
        "TIME_LIMIT",
        `The ${jobNoun(facts)} under ${what} ran longer than ${limit} (--max-hold) and was stopped`,
      );
    }
    case "breach": {
      const late = "was stopped after the end of its lease, because the machine or baton stood still";
      if (outcome.isDead) {
        return failureEnding(
          "FENCE_BREACH",
          `The ${jobNoun(facts)} under ${what} ${late}; another process may have got the lock while it ran`,
        );
      }
      const pids = outcome.survivors.length === 0 ? "" : ` (pids ${outcome.survivors.join(", ")})`;
      const danger = "another process may get the lock while it runs, unless its guard still reaches a server";
      return failureEnding(
        "FENCE_BREACH",
        `The ${jobNoun(facts)} under ${what} may still be running${pids}: baton could not stop it in time; ${danger}`,
      );
    }
    case "not_found":
    case "not_executable":
    case "start_failed":
      return failureEnding(commandStartErrorCodes[outcome.kind], outcome.message + (facts.startHint ?? ""));
    case "cancelled":
      return null;
  }
}

function failureEnding(code: ErrorCode, message: string): LockEnding {
  return { exitCode: toExitCode(code), reason: code.toLowerCase(), message };
}

function lossReason({ lost }: LockEndingFacts): string | null {
  return lost.aborted ? errorMessage(lost.reason) : null;
}

function jobNoun({ isScript = false }: LockEndingFacts): string {
  return isScript ? "script" : "command";
}

function childStatus(child: ChildExitStatus | null, { isScript = false }: LockEndingFacts): string {
  if (isScript) return child === null ? "the script was not notified of the lock" : "the script was stopped";
  if (child === null) return "the command did not run";
  if (child.kind === "unreadable") return `the command was stopped with an unknown exit status (${child.why})`;
  const how = child.kind === "exited" ? `and exited with ${child.code}` : `by ${child.signal}`;
  return `the command was stopped ${how}`;
}
