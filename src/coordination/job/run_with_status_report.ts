/** Runs the main part of a baton command, prints its message, writes the status report, and returns the exit code. */
import type { ChildOutcome } from "../../base/process/spawn/child_outcome.ts";
import type { Lease } from "../../base/process/lease.ts";
import type { Io } from "../../base/terminal/io.ts";
import type { CommandStatusReport } from "../../base/terminal/status_report.ts";
import { StoppedBySignal } from "../../base/process/supervise/signal_source.ts";
import { BatonError, type ErrorCode } from "../../base/errors.ts";
import { type ExitCode, exitCodes, toExitCode } from "../../base/exit_codes.ts";
import type { ReportedJobEnd } from "./job_status_writer.ts";
import type { LockEnding } from "./lock_ending.ts";

/** The facts for the status report, as far as they are known when the call ends. */
export class StatusReportFacts {
  outcome: ChildOutcome | null = null;
  leases: readonly Lease[] = [];
  /** The fencing tokens, in the order of the names. */
  tokens: readonly string[] | null = null;
  waitedMs: number | null = null;
  items: CommandStatusReport["items"] | null = null;

  /** Records that the locks were granted. No command has run under these locks yet. */
  granted(leases: readonly Lease[], waitedMs: number): void {
    this.outcome = null;
    this.leases = leases;
    this.tokens = leases.map((lease) => lease.fencingToken.toString());
    this.waitedMs = waitedMs;
  }
}

export interface StatusReportRunOptions {
  readonly io: Io;
  readonly verb: string;
  readonly names: readonly string[];
  readonly quiet: boolean;
  readonly verbose: boolean;
  readonly values: {
    readonly statusFd?: number | undefined;
    readonly statusFile?: string | undefined;
    readonly conflictExitCode?: number | undefined;
  };
  /** The codes of expected failures. --conflict-exit-code applies to them, and --quiet suppresses their messages. */
  readonly conflicts: readonly ErrorCode[];
  /** True if an expected failure counts as success. Its message is then shown only with --verbose. */
  readonly skips?: boolean;
  /** True if --quiet also suppresses the message of an ending. */
  readonly hasQuietEndings?: boolean;
  readonly facts: StatusReportFacts;
}

/**
 * Calls `run` and reports how it ended. Throws BatonError for a failure before the command was started, or
 * StoppedBySignal if a signal ended the wait or the command.
 */
export async function runWithStatusReport(
  options: StatusReportRunOptions,
  run: () => Promise<LockEnding>,
): Promise<ExitCode> {
  const { io, quiet, verbose, values, conflicts, skips = false, hasQuietEndings = false } = options;
  const isWritten = values.statusFd !== undefined || values.statusFile !== undefined;
  using status = isWritten ? new (await import("./job_status_writer.ts")).JobStatusWriter(options) : null;
  const report = (end: ReportedJobEnd) => status?.write(end);
  const codeOf = (code: ExitCode) => status?.isIncomplete && code === exitCodes.SUCCESS ? exitCodes.IO : code;
  let ending: LockEnding;
  try {
    ending = await run();
  } catch (thrown) {
    if (thrown instanceof StoppedBySignal) {
      report({ reason: "stopped_by_signal", exit_code: null, signal: thrown.signal, message: null });
      throw thrown;
    }
    if (!(thrown instanceof BatonError)) throw thrown;
    const { code, message } = thrown;
    const isConflict = conflicts.includes(code);
    const conflictExitCode = skips ? exitCodes.SUCCESS : values.conflictExitCode ?? toExitCode(code);
    const exitCode = isConflict ? conflictExitCode : toExitCode(code);
    report({ reason: code.toLowerCase(), exit_code: exitCode, signal: null, message });
    if (!isConflict) throw thrown;
    if (skips ? verbose : !quiet) io.err(`baton: ${message}\n`);
    return codeOf(exitCode);
  }
  const { exitCode, reason, message, signal = null } = ending;
  if (message !== null && !(quiet && hasQuietEndings)) io.err(`baton: ${message}\n`);
  report({ reason, exit_code: signal === null ? exitCode : null, signal, message });
  if (signal !== null) throw new StoppedBySignal(signal);
  return codeOf(exitCode);
}
