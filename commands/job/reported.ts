/** Ends a verb that runs a command: prints the message, writes the status report, and returns the exit code. */
import type { Io } from "../../src/terminal/io.ts";
import { type StatusReport, StatusWriter } from "../../src/terminal/status_report.ts";
import { StoppedBySignal } from "../../src/process/supervise/stop_signals.ts";
import { BatonError, type ErrorCode } from "../../src/errors.ts";
import { type ExitCode, exitCodeOf } from "../exit_codes.ts";
import type { LockEnding } from "./lock_ending.ts";

export type ReportedEnd = Pick<StatusReport, "reason" | "exit_code" | "signal" | "message">;

export interface ReportedOptions {
  readonly io: Io;
  readonly quiet: boolean;
  readonly values: {
    readonly statusFd?: number | undefined;
    readonly statusFile?: string | undefined;
    readonly conflictExitCode?: number | undefined;
  };
  /** Expected failures: they use --conflict-exit-code, and --quiet suppresses their message. */
  readonly conflicts: readonly ErrorCode[];
  /** Returns the report with the facts known at the end. */
  reportOf(end: ReportedEnd): StatusReport;
}

/** Throws BatonError for a failure before the command was started, and StoppedBySignal for a signal. */
export async function reported(options: ReportedOptions, run: () => Promise<LockEnding>): Promise<ExitCode> {
  const { io, quiet, values, conflicts } = options;
  using status = new StatusWriter({ fd: values.statusFd, file: values.statusFile, inheritedFds: io.inheritedFds });
  const report = (end: ReportedEnd) => {
    for (const problem of status.write(options.reportOf(end))) io.err(`baton: ${problem}\n`);
  };
  try {
    const { exitCode, reason, message } = await run();
    if (message !== null) io.err(`baton: ${message}\n`);
    report({ reason, exit_code: exitCode, signal: null, message });
    return exitCode;
  } catch (thrown) {
    if (thrown instanceof StoppedBySignal) {
      report({ reason: "stopped_by_signal", exit_code: null, signal: thrown.signal, message: null });
      throw thrown;
    }
    if (!(thrown instanceof BatonError)) throw thrown;
    const { code, message } = thrown;
    const isConflict = conflicts.includes(code);
    const exitCode = isConflict ? values.conflictExitCode ?? exitCodeOf(code) : exitCodeOf(code);
    report({ reason: code.toLowerCase(), exit_code: exitCode, signal: null, message });
    if (!isConflict) throw thrown;
    if (!quiet) io.err(`baton: ${message}\n`);
    return exitCode;
  }
}
