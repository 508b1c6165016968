/**
 * Writes the status report of a baton command that runs a user's command. Loaded only if --status-fd or --status-file
 * is given.
 */
import type { ChildOutcome, SupervisedChildEnding } from "../../base/process/spawn/child_outcome.ts";
import { type CommandStatusReport, StatusReportWriter } from "../../base/terminal/status_report.ts";
import type { Io } from "../../base/terminal/io.ts";

export type ReportedJobEnd = Pick<CommandStatusReport, "reason" | "exit_code" | "signal" | "message">;

interface ReportedJob {
  readonly io: Io;
  readonly verb: string;
  readonly names: readonly string[];
  readonly values: { readonly statusFd?: number | undefined; readonly statusFile?: string | undefined };
  readonly facts: {
    readonly outcome: ChildOutcome | null;
    readonly tokens: readonly string[] | null;
    readonly waitedMs: number | null;
    readonly items: CommandStatusReport["items"] | null;
  };
}

export class JobStatusWriter implements Disposable {
  readonly #job: ReportedJob;
  readonly #writer: StatusReportWriter;
  /** True if writing to a target has failed. */
  isIncomplete = false;

  /** Opens the targets. Throws like StatusReportWriter. */
  constructor(job: ReportedJob) {
    const { values: { statusFd: fd, statusFile: file }, io: { inheritedFds } } = job;
    this.#job = job;
    this.#writer = new StatusReportWriter({ fd, file, inheritedFds });
  }

  write(end: ReportedJobEnd): void {
    for (const problem of this.#writer.write(statusReportOf(this.#job, end))) {
      this.#job.io.err(`baton: ${problem}\n`);
      this.isIncomplete = true;
    }
  }

  [Symbol.dispose](): void {
    this.#writer[Symbol.dispose]();
  }
}

function statusReportOf(
  { verb: command, names, facts: { outcome, tokens, waitedMs, items } }: ReportedJob,
  end: ReportedJobEnd,
): CommandStatusReport {
  return {
    version: 1,
    command,
    names,
    ...end,
    command_status: outcome === null ? null : commandStatusOf(outcome),
    fencing_tokens: tokens,
    waited_ms: waitedMs === null ? null : Math.round(waitedMs),
    held_ms: outcome === null ? null : Math.round(outcome.heldMs),
    ...(items ? { items } : {}),
  };
}

function commandStatusOf(outcome: SupervisedChildEnding): CommandStatusReport["command_status"] {
  switch (outcome.kind) {
    case "exited":
      return { code: outcome.code, signal: null };
    case "signaled":
      return { code: null, signal: outcome.signal };
    case "lost":
    case "revoked":
    case "time_limit":
    case "breach":
      return outcome.child === null ? null : commandStatusOf(outcome.child);
    default:
      return null;
  }
}
