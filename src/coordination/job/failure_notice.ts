/**
 * Runs the command of `--on-failure` or `on-failure=` for a job that has failed and is not tried again. Loaded only
 * when one of them is given. Whether a failure is this call's to tell is decided before: see docs/adr/0052.
 */
import { hostname } from "node:os";
import type { failureCommandVariables } from "../../base/config/child_variables.ts";
import type { Io } from "../../base/terminal/io.ts";
import type { HistoryRecord } from "../history/history_record.ts";
import type { ChildOutcome } from "../../base/process/spawn/child_outcome.ts";
import type { Clock } from "../../base/support/clock.ts";
import { formatUtcMinute, formatUtcSecond } from "../../base/support/instant.ts";
import type { LockEnding } from "./lock_ending.ts";
import type { LockLeaseWithTick } from "../tick/acquire_tick.ts";
import { type CallNotice, type NoticeCommand, runNoticeCommand } from "./notice_command.ts";
import { toRecordedHoldEnd } from "./hold_end.ts";

export interface FailedJob {
  readonly name: string;
  readonly result: "failed" | "lost" | "stopped";
  /** Null if it is unknown. */
  readonly exitCode: number | null;
  /** The item of a pool. */
  readonly item?: string | undefined;
  /** The host that ran the job; empty if it is unknown. */
  readonly host: string;
  /** How long the job ran, in milliseconds; null if it is unknown. */
  readonly tookMs: number | null;
  readonly why: string;
  /** The time of the tick, in Unix milliseconds; null without a tick. */
  readonly tickMs: number | null;
  /** The last lines of the output; empty if the output is not recorded. */
  readonly output: string;
}

/** Returns the facts of a tick that a call has given up. */
export function failedJobOfTick(name: string, record: HistoryRecord): FailedJob {
  const { result, exitCode, host, why, tickMs, beganMs, endedMs } = record;
  const tookMs = beganMs === null || endedMs === null ? null : endedMs - beganMs;
  const known = result === "lost" || result === "stopped" ? result : "failed";
  return { name, result: known, exitCode, host, tookMs, why, tickMs, output: "" };
}

/** Returns the variables and the standard input of the command. */
export function failureNoticeText(job: FailedJob): {
  readonly variables: Readonly<
    Record<keyof typeof failureCommandVariables, string> & { readonly BATON_ITEM: string | undefined }
  >;
  readonly text: string;
} {
  const { name, result, item, host, why, output } = job;
  const exitCode = job.exitCode === null ? "" : String(job.exitCode);
  const tookMs = job.tookMs === null ? "" : String(Math.round(job.tookMs));
  const tick = job.tickMs === null ? "" : formatUtcSecond(job.tickMs);
  const lines = [
    ["name", name],
    ["item", item ?? ""],
    ["result", result],
    ["exit code", exitCode],
    ["host", host],
    ["took ms", tookMs],
    ["tick", tick],
    ["reason", why],
  ].filter(([, value]) => value !== "").map(([key, value]) => `${key}: ${value}\n`);
  return {
    variables: {
      BATON_FAILURE_NAME: name,
      BATON_FAILURE_RESULT: result,
      BATON_FAILURE_EXIT_CODE: exitCode,
      BATON_FAILURE_HOST: host,
      BATON_FAILURE_MS: tookMs,
      BATON_FAILURE_TICK: tick,
      BATON_FAILURE_WHY: why,
      BATON_FAILURE_OUTPUT: output,
      BATON_ITEM: item,
    },
    text: lines.join("") + (output === "" ? "" : `\n${output}`),
  };
}

/** Returns the facts of a command that this call has run; null if it was not started or has succeeded. */
export function failedJobOfEnding(
  name: string,
  { outcome, ending, lost }: {
    readonly outcome: ChildOutcome;
    readonly ending: LockEnding | null;
    readonly lost: AbortSignal;
  },
  { tickMs, output }: Pick<FailedJob, "tickMs" | "output">,
): FailedJob | null {
  if (ending === null || ending.exitCode === 0) return null;
  const { exitCode, message } = ending;
  const result = outcome.kind === "lost" || outcome.kind === "breach"
    ? "lost"
    : outcome.kind === "revoked"
    ? "stopped"
    : "failed";
  const why = message ?? toRecordedHoldEnd(outcome, lost)?.why ?? "";
  return { name, result, exitCode, host: hostname(), tookMs: outcome.heldMs, why, tickMs, output };
}

export interface FailureNoticeOptions extends Pick<NoticeCommand, "line" | "env" | "cwd"> {
  readonly clock: Clock;
  /** Reports that the command for a job failed, with the end of a sentence. */
  readonly tell: (what: string, job: FailedJob) => void;
}

/** Runs the command once for one failure. Never rejects. */
export async function runFailureNotice(
  job: FailedJob,
  { line, env, cwd, clock, tell }: FailureNoticeOptions,
  signal: AbortSignal,
): Promise<void> {
  if (signal.aborted) return;
  const { variables, text } = failureNoticeText(job);
  const failure = await runNoticeCommand({ line, env: { ...env, ...variables }, text, cwd }, { clock, signal });
  if (failure !== null) tell(failure, job);
  else if (signal.aborted) tell("was stopped before its end", job);
}

/** The notices of one call. A notice that cannot run yet waits for its turn. */
export class FailureNotices implements CallNotice {
  readonly #options: FailureNoticeOptions;
  readonly #kill = new AbortController();
  /** The end of the last notice of each turn. */
  readonly #turns: Promise<void>[];
  #count = 0;
  #last: FailedJob | null = null;

  /** `parallel` is how many commands may run at the same time. */
  constructor(
    line: string,
    { io, clock, parallel = 1 }: {
      readonly io: Pick<Io, "env" | "err">;
      readonly clock: Clock;
      readonly parallel?: number;
    },
  ) {
    this.#turns = Array.from({ length: parallel }, () => Promise.resolve());
    const tell = (what: string, { name, item, tickMs }: FailedJob) => {
      const of = item === undefined ? JSON.stringify(name) : `item ${JSON.stringify(item)} of ${JSON.stringify(name)}`;
      const tick = tickMs === null ? "" : `, tick ${formatUtcMinute(tickMs)}`;
      io.err(`baton: --on-failure of ${of}${tick} ${what}\n`);
    };
    this.#options = { line, env: io.env, clock, tell };
  }

  /** Runs the command while the call goes on. */
  run(job: FailedJob): void {
    const turn = this.#count++ % this.#turns.length;
    const previous = this.#turns[turn] ?? Promise.resolve();
    this.#turns[turn] = previous.then(() => runFailureNotice(job, this.#options, this.#kill.signal));
  }

  /** Leaves the start of the command to `end`, when the lock is released. */
  runAtEnd(job: FailedJob | null): void {
    this.#last = job;
  }

  /** Resolves when all commands have ended. Each takes at most 30 s. */
  async end(): Promise<void> {
    if (this.#last !== null && !this.#kill.signal.aborted) this.run(this.#last);
    this.#last = null;
    await Promise.all(this.#turns);
  }

  /** Ends the commands that run, and starts no other. */
  async kill(): Promise<void> {
    this.#kill.abort();
    await this.end();
  }
}

/** Returns the notice of a command, which runs when the lock is released, if the command has failed finally. */
export function noticeOfCommand(
  { names, values: { onFailure = "" } }: {
    readonly names: readonly string[];
    readonly values: { readonly onFailure?: string | undefined };
  },
  { tick, outcome, ending, lost, ...deps }: {
    readonly io: Pick<Io, "env" | "err">;
    readonly clock: Clock;
    readonly tick?: Pick<LockLeaseWithTick, "run" | "hasFailedFinally"> | undefined;
    readonly outcome: ChildOutcome;
    readonly ending: LockEnding;
    readonly lost: AbortSignal;
  },
): FailureNotices {
  const notices = new FailureNotices(onFailure, deps);
  const more = { tickMs: tick?.run.tickMs ?? null, output: "" };
  if (tick?.hasFailedFinally() !== false) {
    notices.runAtEnd(failedJobOfEnding(names.join(" "), { outcome, ending, lost }, more));
  }
  return notices;
}
