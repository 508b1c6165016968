/** Runs the command of a cron job for one tick, under the tick's lease, and records how the command ended. */
import { formatUtcMinute } from "../../base/support/instant.ts";
import { closeSync, statSync } from "node:fs";
import process from "node:process";
import type { CoordinationServers } from "../connect/coordination_servers.ts";
import type { LockLeaseWithTick } from "../tick/acquire_tick.ts";
import { BatonError, errorMessage } from "../../base/errors.ts";
import type { CommandGuard } from "../../base/process/guard/guard.ts";
import { ResignableLease } from "../../base/process/resignable_lease.ts";
import { loadLibc } from "../../base/process/libc.ts";
import type { JobTable } from "../../base/process/proc/job_table.ts";
import type { ChildOutcome, SupervisedChildEnding } from "../../base/process/spawn/child_outcome.ts";
import { openMessageBodyFile } from "../../base/process/spawn/unnamed_file.ts";
import type { SupervisionEvent } from "../../base/process/supervise/child_run.ts";
import { LeaseNoteFile } from "../../base/process/supervise/lease_note.ts";
import { superviseChild } from "../../base/process/supervise/supervise_child.ts";
import { onAbort } from "../../base/support/abort.ts";
import type { Clock } from "../../base/support/clock.ts";
import { formatDuration } from "../../base/support/duration.ts";
import { findHomeFolder } from "../../base/support/home_folder.ts";
import type { Log } from "../../base/support/log.ts";
import { ownUserName } from "../../base/support/user_name.ts";
import type { Io } from "../../base/terminal/io.ts";
import {
  commandEnvironment,
  type CommandEnvironmentFacts,
  type CommandRunOptions,
  toSuperviseOptions,
} from "../job/leased_command.ts";
import { leftoverProcessesMessage, unstoppableProcessesMessage } from "../../base/process/supervise/leftovers.ts";
import { decideLockEnding, type LockEnding } from "../job/lock_ending.ts";
import { toTickEnd } from "../job/hold_end.ts";
import { cronSearchPath } from "./cron_file.ts";
import type { CronJob } from "./crontab.ts";
import { type LogSink, readRestOfJobOutput } from "../../base/terminal/log_sink.ts";
import { OutputTail } from "./output_tail.ts";
import { type FailedJob, failedJobOfEnding, runFailureNotice } from "../job/failure_notice.ts";
import { JobOutputFolder, printJobOutput } from "./job_output.ts";

export interface CronJobSettings extends Pick<CommandRunOptions["values"], "killAfter" | "signal" | "onDoubt"> {
  readonly quiet: boolean;
  readonly verbose: boolean;
  readonly log: "text" | "json";
}

export interface CronJobContext {
  readonly settings: CronJobSettings;
  readonly io: Io;
  readonly stderr: LogSink;
  readonly clock: Clock;
  readonly log: Log;
  readonly place: CoordinationServers;
  readonly guard: CommandGuard;
  readonly beside: JobTable;
  readonly hangUpIgnored: boolean;
  /** The folder for the output of jobs; null if the output is printed. */
  readonly folder: JobOutputFolder | null;
  /** Aborts when running jobs must stop. The reason of the signal is a sentence. */
  readonly stopJobs: AbortSignal;
}

/**
 * If the reader of the log takes nothing for this long, in milliseconds, the rest of a dead command's output is
 * discarded.
 */
const outputMsMax = 2000;

export interface CronJobEnd {
  /** True if a process of the job could not be killed, so that the session must not be closed. */
  readonly hasBreach: boolean;
  /** The facts for on-failure; null if the job was not started or has succeeded. */
  readonly failed: FailedJob | null;
}

/** Runs the job. Rejects with BatonError if the job could not be started, otherwise only because of a bug. */
export async function runCronJob(job: CronJob, tick: LockLeaseWithTick, context: CronJobContext): Promise<CronJobEnd> {
  const { io, stderr, clock, log, guard, beside, settings, folder, hangUpIgnored, stopJobs } = context;
  const { name, options: { maxHoldMs } } = job;
  const { run } = tick;
  const grantedAtMs = clock.now();
  const lease = new ResignableLease(tick.lease);
  using _stopping = asDisposable(onAbort(stopJobs, (reason) => lease.resign(errorMessage(reason))));
  using note = LeaseNoteFile.open(lease, { clock, libc: await loadLibc() });
  const tickText = describeTick(run);
  const fields = { name, line: job.line, tick: new Date(run.tickMs).toISOString(), attempt: run.attempt };
  let reading: Promise<unknown> = Promise.resolve();
  const reader = new AbortController();
  const tail = new OutputTail();
  const input = job.input === null ? null : openMessageBodyFile(new TextEncoder().encode(job.input));
  const environment = cronEnvironment(io, job);
  try {
    const shared = { command: shellCommand(job, environment.SHELL), quiet: settings.quiet, verbose: settings.verbose };
    const outcome = await superviseChild({
      ...toSuperviseOptions({ ...shared, values: { ...settings, foreground: false, maxHold: maxHoldMs } }, io, {
        clock,
        signals: { hangUpIgnored, listen: () => () => {} }, // signals are for the service, not for its jobs
      }),
      onEvent: (event) => logEvent(log, event, { sentence: `${name}: ${tickText}`, fields }),
      lease,
      guard,
      beside,
      grantedAtMs,
      isRead: true,
      descriptors: [],
      cwd: jobFolder(environment),
      ...(input === null ? { readsNothing: true } : { input }),
      env: jobVariables(io, environment, {
        leases: [lease],
        waitedMs: tick.lease.waitedMs,
        place: context.place,
        note,
        tick: run,
        passAuth: false,
      }),
      onStarted({ pid, output }) {
        log("info", "job_started", `${name}: ${tickText} starts (pid ${pid})`, { ...fields, pid });
        if (output === null) return;
        const of = { name, pid, tickMs: run.tickMs, attempt: run.attempt };
        const printed = { ...of, format: settings.log, isTerminal: io.stderrIsTerminal };
        const kept = job.options.onFailure === undefined ? output : tail.keep(output);
        const writing = folder?.write(of, kept) ?? printJobOutput(stderr, printed, kept, reader.signal);
        reading = writing.catch((thrown: unknown) => {
          const what = `the output of ${tickText} is incomplete: ${errorMessage(thrown)}`;
          log("error", "output_lost", `${name}: ${what}`, fields);
        });
      },
    });
    await readRestOfJobOutput(stderr, reading, { clock, waitMs: outputMsMax });
    reader.abort(new BatonError("IO", `stderr did not accept the rest within ${formatDuration(outputMsMax)}`));
    const facts = { what: `"${name}"`, lost: lease.lost, outage: lease.describeOutage(), maxHoldMs };
    const ending = decideLockEnding(outcome, facts);
    const end = toTickEnd(outcome, lease.lost);
    const problem = end === null ? null : await tick.end(end).catch(errorMessage);
    const logged = { sentence: `${name}: ${tickText}`, fields };
    logEnd(log, outcome, ending, logged);
    logMissingRecord(log, { problem, unrecorded: tick.unrecorded() }, logged);
    const known = { outcome, ending, lost: lease.lost };
    const failed = failedJobOfEnding(name, known, { tickMs: run.tickMs, output: tail.text() });
    return { hasBreach: outcome.kind === "breach" && !outcome.isDead, failed };
  } finally {
    reader.abort();
    if (input !== null) closeSync(input);
  }
}

/** Runs the command of on-failure, if the job has one. Never rejects. */
export async function tellCronFailure(
  job: CronJob,
  failed: FailedJob,
  { io, clock, log, stopJobs }: Pick<CronJobContext, "io" | "clock" | "log" | "stopJobs">,
): Promise<void> {
  const { name, line, options: { onFailure } } = job;
  if (onFailure === undefined || stopJobs.aborted) return;
  const tick = failed.tickMs === null ? "" : ` of tick ${formatUtcMinute(failed.tickMs)}`;
  const tell = (what: string) =>
    log("error", "on_failure_failed", `${name}: on-failure${tick} ${what}`, { name, line });
  log("info", "on_failure", `${name}: runs ${onFailure}`, { name, line });
  const env = cronEnvironment(io, job);
  await runFailureNotice(failed, { line: onFailure, env, cwd: jobFolder(env), clock, tell }, stopJobs);
}

function jobFolder({ HOME: home }: CronEnvironment): string {
  return statSync(home, { throwIfNoEntry: false })?.isDirectory() === true ? home : "/";
}

function describeTick({ tickMs, attempt }: LockLeaseWithTick["run"]): string {
  const time = new Date(tickMs).toISOString().replace(":00.000Z", "Z");
  return attempt > 1 ? `tick ${time}, try ${attempt}` : `tick ${time}`;
}

function logEnd(log: Log, outcome: ChildOutcome, ending: LockEnding | null, { sentence, fields }: LoggedJob): void {
  const isGood = outcome.kind === "exited" && outcome.code === 0;
  const tookMs = Math.round(outcome.heldMs);
  const took = `${howItEnded(outcome, ending)} after ${formatDuration(tookMs)}`;
  log(isGood ? "info" : "warning", "job_ended", `${sentence}${took}`, {
    ...fields,
    exit_code: ending?.exitCode ?? 0,
    took_ms: tookMs,
  });
}

function logMissingRecord(
  log: Log,
  { problem, unrecorded }: { readonly problem: string | null; readonly unrecorded: string | null },
  { sentence, fields }: LoggedJob,
): void {
  if (problem !== null) log("error", "end_not_recorded", `${sentence}: its end is not recorded: ${problem}`, fields);
  else if (unrecorded !== null) {
    log("warning", "not_in_history", `${sentence} is not in its history: ${unrecorded}`, fields);
  }
}

interface LoggedJob {
  /** The name of the job and the time of its tick. */
  readonly sentence: string;
  readonly fields: Readonly<Record<string, string | number>>;
}

/** Logs events of a command between its start and its end, such as processes that it has left running. */
function logEvent(log: Log, event: SupervisionEvent, { sentence, fields }: LoggedJob): void {
  if (event.kind === "unstoppable") {
    return log("error", event.kind, `${sentence}: ${unstoppableProcessesMessage(event.what, "command")}`, fields);
  }
  const leftovers = leftoverProcessesMessage(event, "command");
  const what = leftovers ?? `${event.kind}${"reason" in event ? ` (${event.reason})` : ""}`;
  log(leftovers === null ? "detail" : "warning", event.kind, `${sentence}: ${what}`, fields);
}

function howItEnded(outcome: SupervisedChildEnding, ending: LockEnding | null): string {
  if (outcome.kind === "exited") return ` exited with ${outcome.code}`;
  if (outcome.kind === "signaled") return ` was ended by ${outcome.signal}`;
  return ending === null ? " was not started" : `: ${ending.message}`;
}

function asDisposable(end: () => void): Disposable {
  return { [Symbol.dispose]: end };
}

/** Returns the command for a shell that sends stdout and stderr through one pipe, to keep their order. */
function shellCommand({ command }: CronJob, shell: string): [string, ...string[]] {
  return ["/bin/sh", "-c", 'exec 2>&1; exec "$0" -c "$1"', shell, command];
}

/** Returns the variables of cron, of the file, and of baton. Removes the variables of the service. */
function jobVariables(
  io: Io,
  environment: CronEnvironment,
  facts: CommandEnvironmentFacts,
): Record<string, string | undefined> {
  return {
    ...Object.fromEntries(Object.keys(io.env).map((key) => [key, undefined])),
    ...environment,
    ...commandEnvironment(io, facts),
  };
}

interface CronEnvironment extends Record<string, string> {
  readonly SHELL: string;
  readonly HOME: string;
}

/** Returns the variables that cron sets, and those of the file. */
function cronEnvironment({ env }: Pick<Io, "env">, { variables }: CronJob): CronEnvironment {
  const user = ownUserName();
  const home = findHomeFolder(process.geteuid?.() ?? 0, "/etc/passwd") ?? (env["HOME"] || "/");
  return {
    SHELL: "/bin/sh",
    HOME: home,
    PATH: cronSearchPath,
    LOGNAME: user,
    USER: user,
    ...Object.fromEntries(variables),
  };
}
