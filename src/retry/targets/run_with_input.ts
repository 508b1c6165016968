/**
 * Runs a command with a body as its stdin, under a guard and a time limit. Signals that baton gets are not passed to
 * the command.
 */
import { closeSync } from "node:fs";
import { superviseChild, type SuperviseOptions } from "../../base/process/supervise/supervise_child.ts";
import type { ChildOutcome } from "../../base/process/spawn/child_outcome.ts";
import type { BatonError, ErrorCode } from "../../base/errors.ts";
import { openMessageBodyFile } from "../../base/process/spawn/unnamed_file.ts";
import { formatDuration } from "../../base/support/duration.ts";

export interface RunWithInputOptions
  extends
    Pick<SuperviseOptions, "command" | "env" | "lease" | "clock" | "guard" | "killAfterMs" | "beside" | "onEvent"> {
  readonly body: Uint8Array;
  readonly timeoutMs: number;
  readonly hangUpIgnored: boolean;
  /** The working directory of the command. Null means the directory of baton. */
  readonly cwd?: string | null;
}

export interface CommandEnd {
  /**
   * The exit code; 128 plus the number of a signal that ended the command; or an error if the command has no exit code.
   */
  readonly code: number | ErrorCode;
  /** Says how the command ended, such as "exited with 3". The text follows the name of the command. */
  readonly how: string;
}

/** `not_started` means that the body could not be passed to the command. */
export type RunWithInputResult =
  | { readonly kind: "not_started"; readonly error: BatonError }
  | { readonly kind: "ended"; readonly outcome: ChildOutcome } & CommandEnd;

export async function runWithInput(
  { body, timeoutMs, hangUpIgnored, cwd = null, ...options }: RunWithInputOptions,
): Promise<RunWithInputResult> {
  let input: number;
  try {
    input = openMessageBodyFile(body);
  } catch (error) {
    return { kind: "not_started", error: error as BatonError };
  }
  try {
    const outcome = await superviseChild({
      ...options,
      signals: { hangUpIgnored, listen: () => () => {} },
      descriptors: [],
      stopSignal: "SIGTERM",
      onDoubt: "ignore",
      maxHoldMs: timeoutMs,
      foreground: false,
      input,
      ...(cwd === null ? {} : { cwd }),
    });
    return { kind: "ended", outcome, ...describeCommandEnd(outcome, timeoutMs) };
  } finally {
    closeSync(input);
  }
}

export function describeCommandEnd(outcome: ChildOutcome, timeoutMs: number): CommandEnd {
  switch (outcome.kind) {
    case "exited":
      return { code: outcome.code, how: `exited with ${outcome.code}` };
    case "signaled":
      return { code: 128 + outcome.signalNumber, how: `was killed by ${outcome.signal}` };
    case "time_limit":
      return { code: "TIME_LIMIT", how: `ran longer than ${formatDuration(timeoutMs)} and was stopped` };
    case "not_found":
      return { code: "COMMAND_NOT_FOUND", how: `could not be run: ${outcome.message}` };
    case "not_executable":
      return { code: "NOT_EXECUTABLE", how: `could not be run: ${outcome.message}` };
    case "start_failed":
      return { code: "START_FAILED", how: `could not be started: ${outcome.message}` };
    case "unreadable":
      return { code: "INTERNAL", how: `ended with an unknown result: ${outcome.why}` };
    case "revoked":
      return { code: "REVOKED", how: "was stopped because baton was stopped" };
    case "lost":
      return { code: "LOCK_LOST", how: "was stopped because its lease was lost" };
    case "breach":
      return { code: "FENCE_BREACH", how: "could not be confirmed dead" };
    case "cancelled":
      return { code: "REVOKED", how: "was not started" };
  }
}
