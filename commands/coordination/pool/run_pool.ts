/** Runs the items of a pool: connects, locks the component, reads the list, runs the items, and reports the result. */
import { hostname } from "node:os";
import { JobTable } from "../../../src/base/process/proc/job_table.ts";
import { raiseOwnOpenFilesLimit } from "../../../src/base/process/spawn/shell_start.ts";
import { PreparedChild } from "../../../src/base/process/supervise/supervise_child.ts";
import type { CommandGuard } from "../../../src/base/process/guard/guard.ts";
import { StoppedBySignal } from "../../../src/base/process/supervise/signal_source.ts";
import type { Io } from "../../../src/base/terminal/io.ts";
import { encodeSessionHandle } from "../../../src/protocols/zookeeper/end_session.ts";
import type { ZooKeeper } from "../../../src/protocols/zookeeper/zookeeper.ts";
import { BatonError, errorMessage } from "../../../src/base/errors.ts";
import { lockStatus } from "../../../src/coordination/lock/lock_status.ts";
import { runPool } from "../../../src/coordination/pool/run_pool_items.ts";
import type { PoolItemCounts } from "../../../src/coordination/pool/work_list.ts";
import type { PoolItemEnd, PoolWaitLimits } from "../../../src/coordination/pool/pool_run_options.ts";
import { anyAbortSignal, onAbort, rejectOnAbort, throwIfAborted } from "../../../src/base/support/abort.ts";
import type { Clock } from "../../../src/base/support/clock.ts";
import { countWithNoun } from "../../../src/base/support/text.ts";
import { chooseCoordinationServers } from "../../coordination_session.ts";
import type { CoordinationServers } from "../../../src/coordination/connect/coordination_servers.ts";
import { type ExitCode, exitCodes } from "../../../src/base/exit_codes.ts";
import { type CommandRunDependencies, commandRunDependencies } from "../../../src/coordination/job/leased_command.ts";
import type { LockEnding } from "../../../src/coordination/job/lock_ending.ts";
import { runWithStatusReport, StatusReportFacts } from "../../../src/coordination/job/run_with_status_report.ts";
import { type FailedJob, FailureNotices } from "../../../src/coordination/job/failure_notice.ts";
import { endNotices } from "../../../src/coordination/job/notice_command.ts";
import { nestedLockCheck } from "../../../src/coordination/job/outer_locks.ts";
import { PoolJobLog } from "../../../src/coordination/pool/pool_job_log.ts";
import { PoolCommandRunner } from "../../../src/coordination/pool/pool_command_runner.ts";
import type { PoolCommandOptions } from "./pool_options.ts";
import { PoolOutput } from "../../../src/coordination/pool/pool_output.ts";
import { PoolReport } from "../../../src/coordination/pool/pool_report.ts";
import { PoolSignals } from "../../../src/coordination/pool/pool_signals.ts";
import { readPoolItems, readPoolItemsAsTheyCome } from "../../../src/coordination/pool/pool_source.ts";
import {
  closeCoordinationSession,
  connectAndWaitDeadline,
  openCoordinationSession,
  reportServerOutages,
  waitIncludesConnecting,
  warnOfLongSessionTimeout,
} from "../../../src/coordination/connect/command_session.ts";
import { describeThisHolder } from "../../../src/coordination/nodes/holder_info.ts";

/** The number of parallel commands above which the usual limit of 1,024 open files may be too low. */
const manyJobs = 100;

interface PoolEnding extends LockEnding {
  readonly counts: PoolItemCounts | null;
}

/**
 * Runs a call of `baton pool` that runs items. `guard` is the guard process, which is already started. Throws
 * BatonError for a failure before the first item, or StoppedBySignal after a signal.
 */
export async function runPoolCommand(options: PoolCommandOptions, io: Io, guard: CommandGuard): Promise<ExitCode> {
  const facts = new StatusReportFacts();
  const about = { verb: "pool", names: [options.component], conflicts: [], hasQuietEndings: true };
  return await runWithStatusReport({ ...options, ...about, io, facts }, async () => {
    const jobLog = openJobLog(options, guard);
    if (options.values.jobs > manyJobs) await raiseOwnOpenFilesLimit();
    const deps = commandRunDependencies();
    using report = new PoolReport(options, io, { clock: deps.clock, jobLog });
    const output = options.output === null ? null : new PoolOutput(options.output, { ...deps, io: report.io });
    const running = connectAndRun(options, { report, output }, { deps, guard });
    const { counts, ...ending } = await (output === null ? running : withPrintedOutput(running, output));
    facts.items = counts;
    return await withJobLog(ending, jobLog);
  });
}

/** Waits until the output of all jobs is printed. If that fails, the call ends like others that cannot print. */
async function withPrintedOutput<T>(running: Promise<T>, output: PoolOutput): Promise<T> {
  const isStopped = await running.then(() => false, (thrown: unknown) => thrown instanceof StoppedBySignal);
  await output.printed({ isStopped });
  if (!isStopped) throwIfAborted(output.failed);
  return await running;
}

function openJobLog({ values: { joblog } }: PoolCommandOptions, guard: CommandGuard): PoolJobLog | null {
  try {
    return joblog === undefined ? null : new PoolJobLog(joblog);
  } catch (thrown) {
    guard.end();
    throw thrown;
  }
}

/** Ends the job log. An incomplete log makes the call fail, because programs read the log. */
async function withJobLog(ending: LockEnding, jobLog: PoolJobLog | null): Promise<LockEnding> {
  const message = await jobLog?.end() ?? null;
  if (message === null || ending.exitCode !== exitCodes.SUCCESS) return ending;
  return { exitCode: exitCodes.IO, reason: "io", message };
}

/** Where a call prints. */
interface PoolCallOutputs {
  readonly report: PoolReport;
  /** Null if commands write to baton's own streams. */
  readonly output: PoolOutput | null;
}

async function connectAndRun(options: PoolCommandOptions, { report, output }: PoolCallOutputs, { deps, guard }: {
  readonly deps: CommandRunDependencies;
  readonly guard: CommandGuard;
}): Promise<PoolEnding> {
  const { values, component, quiet } = options;
  const { clock } = deps;
  const { io } = report;
  using signals = new PoolSignals(deps.signals, { drains: values.drain, clock });
  const waitMs = values.wait ?? 0;
  using limit = connectAndWaitDeadline(clock, waitMs, { values, stop: signals.stop });
  const wait: ComponentWait = { limit: limit.signal, isOver: false };
  let zk: ZooKeeper | null = null;
  let jobs: PoolCommandRunner | null = null;
  const notices = values.onFailure === undefined
    ? null
    : new FailureNotices(values.onFailure, { io, clock, parallel: values.jobs });
  onAbort(signals.stop, (reason) => {
    if (!values.drain || quiet) return;
    io.err(
      `baton: ${
        errorMessage(reason)
      }: no new items are started, and running items finish; the next signal is forwarded\n`,
    );
  });
  try {
    const what = `pool "${component}"`;
    const place = chooseCoordinationServers(options, io, { what, scope: values.scope, signal: limit.signal });
    const isPatient = waitIncludesConnecting(waitMs, values);
    const opening = { isPatient, io, clock, quiet, what: JSON.stringify(component) };
    zk = await openCoordinationSession(deps.connect, place.connect, opening);
    warnOfLongSessionTimeout(options, io, { place, zk });
    guard.setSession(encodeSessionHandle(place.connect, zk.session));
    jobs = new PoolCommandRunner(options, {
      report,
      output,
      clock,
      signals,
      guard,
      place,
      beside: new JobTable(),
      prepare: (options) => new PreparedChild(options),
    });
    return await runItems(zk, jobs, options, { report, output, clock, signals, place, wait, notices });
  } finally {
    // A process could not be killed, so the session and the guard process are not ended here.
    if (jobs?.hasBreach !== true) {
      guard.end();
      if (zk !== null) await closeCoordinationSession(zk, clock, wait.isOver ? signals.stop : limit.signal);
    }
    if (notices !== null) await endNotices([notices], signals.forwarded);
  }
}

/** Returns the facts of an item whose last try has failed on this host. */
function failedPoolItem(name: string, { item, end, tookMs }: PoolItemEnd): FailedJob {
  const { what: why, exitCode = null } = end;
  return { name, result: "failed", item, exitCode, host: hostname(), tookMs, why, tickMs: null, output: "" };
}

/** The wait for the component's lock, which starts with the call. */
interface ComponentWait {
  readonly limit: AbortSignal;
  isOver: boolean;
}

async function runItems(
  zk: ZooKeeper,
  jobs: PoolCommandRunner,
  options: PoolCommandOptions,
  { report, output, clock, signals, place, wait, notices }: PoolCallOutputs & {
    readonly clock: Clock;
    readonly signals: PoolSignals;
    readonly place: CoordinationServers;
    readonly wait: ComponentWait;
    readonly notices: FailureNotices | null;
  },
): Promise<PoolEnding> {
  const { values, component, path, items, loop } = options;
  const { io } = report;
  const startMs = clock.now();
  using outage = reportServerOutages(zk, JSON.stringify(component), { io, clock, quiet: options.quiet });
  await checkNestedLocks(zk, options, { io, signal: wait.limit });
  const summarize = (counts?: PoolItemCounts) =>
    output === null ? report.summarize(counts) : output.after(() => report.summarize(counts));
  const stop = anyAbortSignal(signals.stop, output?.failed);
  const later = loop && items.kind === "stdin" ? readPoolItemsAsTheyCome({ component, path }) : null;
  try {
    const counts = await runPool(zk, component, {
      path,
      clock,
      jobs: values.jobs,
      total: values.total ?? null,
      loop,
      retries: values.retries,
      rememberMs: values.doneTtl ?? null,
      wait: poolWaitOf(values),
      list: (lease) => {
        wait.isOver = true;
        outage[Symbol.dispose]();
        if (later !== null) return Promise.resolve([]); // the component's lock does not wait for the items
        const signal = AbortSignal.any([signals.stop, lease.lost]);
        return readPoolItems(items, { component, path, signal, query: (line) => jobs.runQuery(line, lease) });
      },
      later,
      listsAgain: items.kind === "query",
      run: (job) => jobs.run(job),
      prepare: (job) => jobs.prepare(job),
      onItemEnded: (ended) => {
        report.itemEnded(ended);
        if (ended.result === "failed" && !signals.forwarded.aborted) notices?.run(failedPoolItem(component, ended));
      },
      unprinted: output,
      stop,
      limit: wait.limit,
      onProblem: (thrown) => io.err(`baton: ${errorMessage(thrown)}\n`),
      info: describeThisHolder(options),
      acl: place.connect.acl,
      closesSession: true,
    });
    const isStopped = stop.aborted;
    const ending = decidePoolEnding(component, counts, { codeOfFailure: jobs.exitCode(), ...values, loop, isStopped });
    await recordRun(zk, options, { counts, isStopped, place, clock, io, tookMs: clock.now() - startMs });
    if (counts.claimed > 0 || ending.message === null) summarize(counts);
    if (signals.forwarded.aborted && !jobs.hasBreach) throw signals.stop.reason;
    return ending;
  } catch (thrown) {
    summarize();
    return endingOfError(thrown, jobs);
  }
}

/** Returns how a run ends that an error has ended. Throws the error if it is all that the user needs to know. */
function endingOfError(thrown: unknown, jobs: PoolCommandRunner): PoolEnding {
  if (!(thrown instanceof BatonError)) throw thrown;
  const { code, message } = thrown;
  if (code === "LOCK_BUSY" || code === "LOCK_TIMEOUT") {
    return { exitCode: exitCodes.SKIPPED, reason: "skipped", message, counts: null };
  }
  // The failure of an item tells the user more than a later error of the session.
  const exitCode = jobs.exitCode();
  if (exitCode === exitCodes.ITEM_FAILED) throw thrown;
  return { exitCode, reason: "failed", message, counts: null };
}

/** Rejects if this call holds the lock of the component already. */
async function checkNestedLocks(
  zk: ZooKeeper,
  { component, path }: PoolCommandOptions,
  { io, signal }: { readonly io: Io; readonly signal: AbortSignal },
): Promise<void> {
  const holders = async () => (await lockStatus(zk, component, { path: path.component })).holders;
  await rejectOnAbort(nestedLockCheck(io)?.(component, holders) ?? Promise.resolve(), signal);
}

/** Records the run in the history if the run has processed any items. */
async function recordRun(zk: ZooKeeper, options: PoolCommandOptions, { counts, isStopped, place, clock, io, tookMs }: {
  readonly counts: PoolItemCounts;
  readonly isStopped: boolean;
  readonly place: CoordinationServers;
  readonly clock: Clock;
  readonly io: Io;
  readonly tookMs: number;
}): Promise<void> {
  const { values, component: name } = options;
  if (!values.history || counts.claimed === 0) return;
  const { recordPoolRun } = await import("../../../src/coordination/job/recorded_hold.ts");
  const { done, failed, skipped, busy, remaining } = counts;
  const result = isStopped ? "stopped" : failed > 0 ? "failed" : "done";
  const others = [[skipped, "skipped"], [busy, "with other calls"], [remaining, "left"]] as const;
  const why = [`${done} done, ${failed} failed`, ...others.filter(([count]) => count > 0).map((pair) => pair.join(" "))]
    .join(", ");
  const end = { result, exitCode: null, signal: null, why } as const;
  const about = { kind: "pool", values, info: describeThisHolder(options), acl: place.connect.acl, clock } as const;
  const problem = await recordPoolRun(zk, { name, end, tookMs }, about);
  if (problem !== null) io.err(`baton: ${problem}\n`);
}

/** Returns how long to wait while another call chooses items. Choosing takes at most --query-timeout. */
const poolWaitOf = ({ wait, queryTimeout }: PoolCommandOptions["values"]): PoolWaitLimits =>
  wait === undefined ? { whileChoosingMs: queryTimeout } : wait === 0 ? "none" : wait;

/** Decides from the item counts how the call ends. Pure. */
export function decidePoolEnding(
  component: string,
  counts: PoolItemCounts,
  { codeOfFailure, total, loop, isStopped }: {
    readonly codeOfFailure: ExitCode;
    readonly total?: number | undefined;
    readonly loop: boolean;
    /** True if a signal stopped the run. Then it is no mistake that items remain. */
    readonly isStopped: boolean;
  },
): PoolEnding {
  const { claimed, failed, busy, remaining } = counts;
  if (failed > 0) return { exitCode: codeOfFailure, reason: "failed", message: null, counts };
  const isUnfinished = loop && remaining > 0 && !isStopped;
  if (isUnfinished || (claimed === 0 && remaining + busy > 0)) {
    const message = remaining > 0
      ? notStartedMessage(component, counts, total)
      : `no item of pool "${component}" is free; other calls process ${countWithNoun(busy, "item")}`;
    return { exitCode: exitCodes.BUSY, reason: claimed === 0 ? "nothing_free" : "items_left", message, counts };
  }
  return { exitCode: exitCodes.SUCCESS, reason: claimed === 0 ? "nothing_to_do" : "done", message: null, counts };
}

function notStartedMessage(
  component: string,
  { claimed, remaining }: PoolItemCounts,
  total: number | undefined,
): string {
  const rest = `${countWithNoun(remaining, "item is", "items are")} left`;
  const item = `no ${claimed === 0 ? "" : "other "}item of pool "${component}"`;
  if (total === undefined) return `${item} was started; ${rest}`;
  return `${item} can start: ${countWithNoun(total, "item runs", "items run")} already, the limit of --total; ${rest}`;
}
