/**
 * Runs a line of shell at a turn of leadership: bounded in time, and dead with everything it started when it is over. Under the
 * guard of the term, which goes on.
 */
import { formatDuration } from "../../support/duration.ts";
import type { ChildOutcome } from "../spawn/child_outcome.ts";
import { OwnTime } from "./local_lease.ts";
import { shellLine } from "../spawn/shell_line.ts";
import { superviseChild, type SuperviseOptions } from "./supervise_child.ts";

export interface HookOptions
  extends Pick<SuperviseOptions, "env" | "clock" | "signals" | "guard" | "killAfterMs" | "stopSignal" | "signal"> {
  readonly line: string;
  readonly timeoutMs: number;
  /** It ends before this lease does; left out: its time is its own. */
  readonly lease?: SuperviseOptions["lease"];
}

/** A hook that was told to stop has this long before it is killed, or --kill-after if that is shorter. Milliseconds. */
const killAfterMsMax = 1000;

export async function runHook(options: HookOptions): Promise<ChildOutcome> {
  const { line, timeoutMs, clock } = options;
  const killAfterMs = Math.min(options.killAfterMs, killAfterMsMax);
  const lease = options.lease ?? new OwnTime(clock, timeoutMs + 10 * killAfterMsMax);
  const outcome = await superviseChild({
    ...options,
    lease,
    command: shellLine(line),
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

/** What went wrong, as the end of a sentence; null when nothing did. */
export function complaintAboutHook(outcome: ChildOutcome, timeoutMs: number): string | null {
  switch (outcome.kind) {
    case "exited":
      return outcome.code === 0 ? null : `exited with ${outcome.code}`;
    case "signaled":
      return `was ended by ${outcome.signal}`;
    case "time_limit":
      return `ran longer than ${formatDuration(timeoutMs)} and was stopped`;
    case "lost":
    case "revoked":
      return "was stopped, because the leadership was over";
    case "breach":
      return "could not be stopped";
    case "cancelled":
      return null;
    case "unreadable":
      return `has ended, and how is not known: ${outcome.why}`;
    case "not_found":
    case "not_executable":
    case "start_failed":
      return `could not be started: ${outcome.message}`;
  }
}
