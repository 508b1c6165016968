/**
 * Runs a line of shell at intervals to check whether a command is healthy. Each check has a time limit, and all its
 * processes are dead before the next check. Only several failures in a row count.
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

/**
 * Makes one check. Resolves with null for a success, otherwise with the description of the failure as the end of a
 * sentence. Ends soon after `signal` aborts.
 */
export type HealthCheck = (signal: AbortSignal) => Promise<string | null>;

export interface HealthWatchOptions {
  readonly intervalMs: number;
  readonly timeoutMs: number;
  /** The number of failures in a row after which the watch ends. */
  readonly failuresMax: number;
  readonly clock: Clock;
  /** Aborts to end the watch and a running check. */
  readonly signal: AbortSignal;
  /** Returns true if the command is frozen. A frozen command cannot respond, so the results of checks do not count. */
  readonly isFrozen: () => boolean;
  readonly check: HealthCheck;
  readonly onFailure: (failure: string, inARow: number) => void;
}

/**
 * Watches the health of a command. Resolves with the last failure after `failuresMax` failures in a row, or with null
 * when the signal ends the watch.
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
  /**
   * The command's environment, including its mark, so that baton ends the check's processes together with the
   * command's.
   */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** The descriptor of a file that becomes the standard input. By default, there is none. */
  readonly input?: number | undefined;
  readonly cwd?: string | undefined;
  /** True: processes that the line leaves in the background may go on until the signal aborts. */
  readonly waitsForAll?: boolean;
}

const checkIntervalMs = 5;
/** Times between two searches for processes in the background. A search reads all processes of the machine. */
const backgroundIntervalsMs = { first: 50, max: 1000 };
/**
 * How long a check waits for its killed processes, in milliseconds. If some live longer, the end of the command waits
 * for them.
 */
const killMsMax = 1000;

/**
 * Returns a health check that runs a line of shell in a separate process group. All its processes are dead when it
 * ends.
 */
export function shellHealthCheck(
  { line, env, clock, input, cwd, waitsForAll = false }: ShellCheckOptions,
): HealthCheck {
  return async (signal) => {
    const cookie = newGuid();
    const started = await spawnChild(hookShellCommand(line, input === undefined ? undefined : ""), {
      env: childEnvironment({ ...env, ...jobCookieEnvironment(cookie, env[jobCookieVariable]) }),
      ownGroup: true,
      descriptors: [],
      hangUpIgnored: false,
      input,
      cwd,
      signal,
    });
    if (started.kind === "cancelled") return null;
    if (started.kind !== "started") return `could not be started: ${started.message}`;
    const processes = new JobProcesses({ pid: started.pid, ownGroup: true, cookie, libc: null, adopts: false });
    const off = onAbort(signal, () => processes.signalAll("SIGKILL"));
    const end = await started.ended;
    processes.commandEnded();
    if (waitsForAll) await allEnded(processes, clock, signal);
    off();
    await killAll(processes, clock);
    return describeChildFailure(end);
  };
}

async function allEnded(processes: JobProcesses, clock: Clock, signal: AbortSignal): Promise<void> {
  let { first: waitMs } = backgroundIntervalsMs;
  while (!signal.aborted && processes.alive().length > 0) {
    await sleep(clock, waitMs, signal).catch(() => {});
    waitMs = Math.min(2 * waitMs, backgroundIntervalsMs.max);
  }
}

async function killAll(processes: JobProcesses, clock: Clock): Promise<void> {
  const lastMs = clock.now() + killMsMax;
  while ((processes.alive().length > 0 || processes.isUndecided()) && clock.now() < lastMs) {
    processes.signalAll("SIGKILL");
    await sleep(clock, checkIntervalMs);
  }
}
