/**
 * Runs a line of shell again and again to check whether a command is healthy. One check at a time, each bounded in
 * time; all its processes are dead before the next one. Failures are counted in a row: a success resets the count.
 */
import { onAbort } from "../../support/abort.ts";
import type { Clock } from "../../support/clock.ts";
import { deadlineAfter, sleep } from "../../support/deadline.ts";
import { formatDuration } from "../../support/duration.ts";
import { newGuid } from "../../support/guid.ts";
import { JobProcesses } from "../proc/job_processes.ts";
import { jobCookieEnvironment, jobCookieVariable } from "../proc/process_table.ts";
import { describeChildFailure } from "../spawn/child_outcome.ts";
import { hookShellCommand } from "../spawn/shell_start.ts";
import { childEnvironment, spawnChild } from "../spawn/spawn_child.ts";

/** Ends soon after the signal aborts; resolves with `null` for a success, else with the end of a sentence. */
export type HealthCheck = (signal: AbortSignal) => Promise<string | null>;

export interface HealthWatchOptions {
  readonly intervalMs: number;
  readonly timeoutMs: number;
  /** Failures in a row that end the watch. */
  readonly failuresMax: number;
  readonly clock: Clock;
  /** Ends the watch, and the check that runs. */
  readonly signal: AbortSignal;
  /** A frozen command cannot respond: such checks do not count. */
  readonly isFrozen: () => boolean;
  readonly check: HealthCheck;
  readonly onFailure: (failure: string, inARow: number) => void;
}

/**
 * Resolves with the last failure when there were `failuresMax` in a row, and with null when the signal ended the watch.
 */
export async function watchCommandHealth(options: HealthWatchOptions): Promise<string | null> {
  const { clock, signal, intervalMs, failuresMax } = options;
  for (let failures = 0; !signal.aborted;) {
    await sleep(clock, intervalMs, signal).catch(() => {});
    if (signal.aborted || options.isFrozen()) continue;
    const failure = await checkOnce(options);
    if (signal.aborted || options.isFrozen()) continue;
    failures = failure === null ? 0 : failures + 1;
    if (failure !== null) options.onFailure(failure, failures);
    if (failure !== null && failures >= failuresMax) return failure;
  }
  return null;
}

async function checkOnce({ clock, signal, timeoutMs, check }: HealthWatchOptions): Promise<string | null> {
  const late = new Error("the check is late");
  using limit = deadlineAfter(clock, timeoutMs, { signal, reason: () => late });
  const failure = await check(limit.signal);
  return limit.signal.reason === late ? `did not end within ${formatDuration(timeoutMs)}` : failure;
}

export interface ShellCheckOptions {
  readonly line: string;
  /** The command's environment with its mark: the end of the command's processes includes those of a check. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
}

/** Milliseconds between checks of processes that were killed. */
const checkIntervalMs = 5;
/** Processes that are alive after this time are left to the end of the command, which waits for them. */
const killMsMax = 1000;

/**
 * A check by a line of shell: started in a process group of its own, and dead with all its processes when it is over.
 */
export function shellHealthCheck({ line, env, clock }: ShellCheckOptions): HealthCheck {
  return async (signal) => {
    const cookie = newGuid();
    const started = await spawnChild(hookShellCommand(line), {
      env: childEnvironment({ ...env, ...jobCookieEnvironment(cookie, env[jobCookieVariable]) }),
      ownGroup: true,
      descriptors: [],
      hangUpIgnored: false,
      signal,
    });
    if (started.kind === "cancelled") return null;
    if (started.kind !== "started") return `could not be started: ${started.message}`;
    const processes = new JobProcesses({ pid: started.pid, ownGroup: true, cookie, libc: null, adopts: false });
    const off = onAbort(signal, () => processes.signalAll("SIGKILL"));
    const end = await started.ended;
    off();
    processes.commandEnded();
    await killAll(processes, clock);
    return describeChildFailure(end);
  };
}

async function killAll(processes: JobProcesses, clock: Clock): Promise<void> {
  const lastMs = clock.now() + killMsMax;
  while ((processes.alive().length > 0 || processes.isUndecided()) && clock.now() < lastMs) {
    processes.signalAll("SIGKILL");
    await sleep(clock, checkIntervalMs);
  }
}
