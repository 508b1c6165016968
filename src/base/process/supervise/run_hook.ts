/**
 * Runs a hook: a line of shell at the beginning or the end of a leadership, with a time limit. All its processes are
 * dead when it is over. The leadership's guard also watches the hook, and continues afterwards.
 */
import { formatDuration } from "../../support/duration.ts";
import { type ChildOutcome, describeChildFailure } from "../spawn/child_outcome.ts";
import { LocalLease } from "../local_lease.ts";
import { hookShellCommand } from "../spawn/shell_start.ts";
import { superviseChild, type SuperviseOptions } from "./supervise_child.ts";

export interface LeadershipHookOptions
  extends Pick<SuperviseOptions, "env" | "clock" | "signals" | "guard" | "killAfterMs" | "stopSignal" | "signal"> {
  readonly line: string;
  readonly timeoutMs: number;
  /** The hook ends before this lease ends. If there is no lease, only the timeout limits the hook. */
  readonly lease?: SuperviseOptions["lease"];
}

/**
 * The longest time from the stop signal to SIGKILL for a hook, in milliseconds. If --kill-after is shorter, that
 * applies.
 */
const killAfterMsMax = 1000;

export async function runLeadershipHook(options: LeadershipHookOptions): Promise<ChildOutcome> {
  const { line, timeoutMs, clock } = options;
  const killAfterMs = Math.min(options.killAfterMs, killAfterMsMax);
  const lease = options.lease ?? new LocalLease(clock, timeoutMs + 10 * killAfterMsMax);
  const outcome = await superviseChild({
    ...options,
    lease,
    command: hookShellCommand(line),
    keepsGuard: true,
    descriptors: [],
    grantedAtMs: clock.now(),
    maxHoldMs: timeoutMs,
    killAfterMs,
    onDoubt: "ignore",
    foreground: false,
  });
  if (outcome.kind !== "breach") options.guard.forget(lease.holderId);
  return outcome;
}

/** Returns the description of a failure as the end of a sentence; null for a success. */
export function describeHookFailure(outcome: ChildOutcome, timeoutMs: number): string | null {
  switch (outcome.kind) {
    case "time_limit":
      return `ran longer than ${formatDuration(timeoutMs)} and was stopped`;
    case "lost":
    case "revoked":
      return "was stopped, because the leadership had ended";
    case "breach":
      return "could not be stopped";
    case "cancelled":
      return null;
    case "not_found":
    case "not_executable":
    case "start_failed":
      return `could not be started: ${outcome.message}`;
    default:
      return describeChildFailure(outcome);
  }
}
