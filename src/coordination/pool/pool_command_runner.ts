/** Runs the commands of items, and the query, under leases, several at the same time. */
import { setImmediate } from "node:timers";
import type { ChildOutcome } from "../../base/process/spawn/child_outcome.ts";
import type { JobTable } from "../../base/process/proc/job_table.ts";
import { LeaseNoteFile } from "../../base/process/supervise/lease_note.ts";
import { loadLibc } from "../../base/process/libc.ts";
import type { PreparedChild, SuperviseOptions } from "../../base/process/supervise/supervise_child.ts";
import type { CommandGuard } from "../../base/process/guard/guard.ts";
import { BatonError } from "../../base/errors.ts";
import type { Lease } from "../../base/process/lease.ts";
import type { PoolJob, PoolJobEnd, PreparedPoolJob } from "./pool_run_options.ts";
import { rejectOnAbort } from "../../base/support/abort.ts";
import type { Clock } from "../../base/support/clock.ts";
import type { CoordinationServers } from "../connect/coordination_servers.ts";
import { type ExitCode, exitCodes } from "../../base/exit_codes.ts";
import { commandEnvironment, type CommandRunOptions, toSuperviseOptions } from "../job/leased_command.ts";
import { decideLockEnding, type LockEnding } from "../job/lock_ending.ts";
import { commandForItem, isProgramNamedByItem } from "./item_command.ts";
import type { JobOutput, PoolOutput } from "./pool_output.ts";
import type { PoolReport } from "./pool_report.ts";
import type { PoolSignals } from "./pool_signals.ts";
import { itemQueryError, itemQueryTimeoutMessage, readPoolItemText } from "./pool_source.ts";

/** The options of a run that concern the commands of its items. Times are in milliseconds. */
export interface PoolCommandRunnerOptions {
  readonly component: string;
  readonly command: readonly [string, ...string[]];
  /** Whether the last argument is a shell command. */
  readonly isLine: boolean;
  readonly quiet: boolean;
  readonly verbose: boolean;
  readonly values: Pick<CommandRunOptions["values"], "killAfter" | "signal" | "onDoubt" | "maxHold"> & {
    readonly queryTimeout: number;
    /** Whether commands inherit the credentials in baton's environment. */
    readonly passAuth: boolean;
    /** How often a failed item is tried again. */
    readonly retries: number;
  };
}

export interface PoolCommandRunnerContext {
  readonly report: Pick<PoolReport, "io" | "jobLog">;
  /** Null if commands write to baton's own streams. */
  readonly output: PoolOutput | null;
  readonly clock: Clock;
  readonly signals: PoolSignals;
  readonly guard: CommandGuard;
  readonly beside: JobTable;
  readonly place: CoordinationServers;
  prepare(options: SuperviseOptions): Pick<PreparedChild, "run" | "drop">;
}

/** Exit codes that are more specific than "an item failed"; the most severe code is first. */
const severeCodes: readonly ExitCode[] = [
  exitCodes.FENCE_BREACH,
  exitCodes.LOST,
  exitCodes.REVOKED,
  exitCodes.INTERNAL,
  exitCodes.START_FAILED,
  exitCodes.NOT_EXECUTABLE,
  exitCodes.COMMAND_NOT_FOUND,
];

/** The command of an item, or the query, which runs under a lease. */
interface LeasedCommand {
  readonly lease: Lease;
  readonly itemLease: Lease;
  readonly command: readonly [string, ...string[]];
  readonly pool?: { readonly name: string; readonly item: string };
  readonly maxHoldMs: number | undefined;
  /** The name of the lease in messages. */
  readonly what: string;
  readonly kind?: string;
  readonly more: Partial<Pick<SuperviseOptions, "isRead" | "onStarted" | "signals">>;
}

interface PreparedCommand {
  readonly child: Pick<PreparedChild, "run" | "drop">;
  readonly note: LeaseNoteFile | null;
}

interface SupervisedEnd {
  readonly outcome: ChildOutcome;
  readonly ending: LockEnding | null;
}

export class PoolCommandRunner {
  readonly #options: PoolCommandRunnerOptions;
  readonly #context: PoolCommandRunnerContext;
  /** The exit codes of jobs that did not end by themselves. */
  readonly #severe = new Set<ExitCode>();
  #hasBreach = false;

  constructor(options: PoolCommandRunnerOptions, context: PoolCommandRunnerContext) {
    this.#options = options;
    this.#context = context;
  }

  /** Whether a process could not be killed, so that the guard process and the session must stay. */
  get hasBreach(): boolean {
    return this.#hasBreach;
  }

  exitCode(): ExitCode {
    return severeCodes.find((code) => this.#severe.has(code)) ?? exitCodes.ITEM_FAILED;
  }

  run(job: PoolJob): Promise<PoolJobEnd> {
    return this.prepare(job).run();
  }

  /** Prepares the command of an item, so that the command can start without delay. */
  prepare({ item, itemLease, lease, attempt }: PoolJob): PreparedPoolJob {
    const { component, isLine, values, verbose } = this.#options;
    const { report: { io, jobLog }, clock, output, signals } = this.#context;
    const command = commandForItem(this.#options.command, item, isLine);
    const what = JSON.stringify(item);
    let read: JobOutput | null = null;
    const { run, drop } = this.#prepare({
      lease,
      itemLease,
      command,
      pool: { name: component, item },
      maxHoldMs: values.maxHold,
      what,
      more: output === null ? {} : { isRead: "both", onStarted: (child) => read = output.readJob(item, child) },
    });
    return {
      drop,
      run: async () => {
        // A further try keeps the lock, so that it can wait. Other items have waited before they were claimed.
        if (attempt > 1) await output?.waitForRoom(AbortSignal.any([signals.stop, lease.lost])).catch(() => {});
        const started = { atMs: clock.now(), wallMs: Date.now() };
        const running = run(); // start it before printing
        jobLog?.start(item);
        if (verbose) {
          io.err(
            `baton: item ${what} starts${attempt > 1 ? `, try ${attempt}` : ""}, token ${itemLease.fencingToken}\n`,
          );
        }
        const { outcome, ending } = await running;
        if (read !== null) output?.jobEnded(read);
        if (ending !== null) {
          const { exitCode } = ending;
          const signal = outcome.kind === "signaled" ? outcome.signalNumber : 0;
          const tookMs = clock.now() - started.atMs;
          jobLog?.endTry(item, { startedMs: started.wallMs, tookMs, exitCode, signal, command });
        }
        return this.#toJobEnd(what, outcome, { ending, attempt });
      },
    };
  }

  /**
   * Runs the query and returns its output. Rejects with IO if the query fails, or BAD_DATA if the output is too long.
   * Rejects with LOCK_LOST or REVOKED if the component's lock is lost or revoked.
   */
  async runQuery(line: string, component: Lease): Promise<string> {
    const { values, component: componentName } = this.#options;
    const name = "the output of --query";
    let reading: Promise<string> = Promise.resolve("");
    const { outcome, ending } = await this.#prepare({
      lease: component,
      itemLease: component,
      command: ["/bin/sh", "-c", line],
      maxHoldMs: values.queryTimeout,
      what: JSON.stringify(componentName),
      kind: "Component",
      more: {
        signals: this.#context.signals.forClaiming(),
        isRead: true,
        onStarted({ output }) {
          reading = output === null ? reading : readPoolItemText(output, name);
          reading.catch(() => {}); // looked at below
        },
      },
    }).run();
    const { stop } = this.#context.signals;
    const isWell = ending?.exitCode === exitCodes.SUCCESS;
    if (outcome.kind === "breach") throw new BatonError("FENCE_BREACH", ending?.message ?? "");
    if (stop.aborted && !isWell) throw stop.reason;
    // All processes of the query are dead. If another process keeps the pipe open, a signal ends this wait.
    const text = await rejectOnAbort(reading, stop);
    if (isWell) return text;
    if (component.lost.aborted) throw component.lost.reason;
    // The query is stopped before the lease ends, so the lease has not yet reported the loss.
    if (outcome.kind === "lost") throw new BatonError("LOCK_LOST", ending?.message ?? "");
    if (outcome.kind === "revoked") throw new BatonError("REVOKED", ending?.message ?? "");
    throw itemQueryError(
      line,
      outcome.kind === "time_limit"
        ? itemQueryTimeoutMessage(values.queryTimeout)
        : ending?.message ?? `it exited with ${ending?.exitCode}`,
    );
  }

  #prepare(order: LeasedCommand): { run(): Promise<SupervisedEnd>; drop(): void } {
    let ready: PreparedCommand | null = null;
    const preparing = this.#prepareSupervised(order).then((one) => ready = one);
    preparing.catch(() => {}); // `run` reports it
    return {
      run: async () => {
        const { child, note } = ready ?? await preparing;
        try {
          const outcome = await child.run();
          if (outcome.kind === "breach") this.#hasBreach = true;
          const { lost } = order.lease;
          const outage = order.lease.describeOutage?.();
          return { outcome, ending: decideLockEnding(outcome, { ...order, lost, outage }) };
        } finally {
          setImmediate(() => note?.[Symbol.dispose]()); // later, because the next item may wait for the end of this one
        }
      },
      drop: () =>
        void preparing.then(({ child, note }) => {
          child.drop();
          note?.[Symbol.dispose]();
        }, () => {}),
    };
  }

  async #prepareSupervised(
    { lease, itemLease, command, pool, maxHoldMs, more }: LeasedCommand,
  ): Promise<PreparedCommand> {
    const { report: { io }, clock, signals, guard, beside, place, prepare } = this.#context;
    const { values } = this.#options;
    const note = LeaseNoteFile.open(lease, { clock, libc: await loadLibc() });
    const facts = { leases: [itemLease], waitedMs: itemLease.waitedMs, place, note, passAuth: values.passAuth };
    const options = toSuperviseOptions(
      { ...this.#options, command, item: pool?.item, values: { ...values, foreground: false, maxHold: maxHoldMs } },
      io,
      { clock, signals },
    );
    const child = prepare({
      ...options,
      ...more,
      lease,
      guard,
      beside,
      readsNothing: true,
      signal: signals.stop,
      env: commandEnvironment(io, { ...facts, ...(pool === undefined ? {} : { pool }) }),
    });
    return { child, note };
  }

  #toJobEnd(what: string, outcome: ChildOutcome, { ending, attempt }: {
    readonly ending: LockEnding | null;
    readonly attempt: number;
  }): PoolJobEnd {
    const { quiet, verbose, command, values: { retries } } = this.#options;
    const { report: { io }, output } = this.#context;
    const say = (text: string) => output === null ? io.err(text) : output.after(() => io.err(text));
    const end = { what: "", mayRetry: false, stopsPool: false, keepsLock: false } as const;
    if (ending === null) return { ...end, result: "not_started" };
    const { exitCode, message } = ending;
    if (outcome.kind === "exited" && outcome.code === 0) {
      if (verbose) say(`baton: item ${what} exited with 0\n`);
      return { ...end, result: "done", what: "exited with 0" };
    }
    const how = outcome.kind === "exited"
      ? `exited with ${outcome.code}`
      : outcome.kind === "signaled"
      ? `ended by ${outcome.signal}`
      : message ?? outcome.kind;
    const tries = retries === 0 ? "" : `, try ${attempt} of ${retries + 1}`;
    if (message !== null) say(`baton: item ${what}: ${message}${tries}\n`);
    else if (!quiet) say(`baton: item ${what} ${how}${tries}\n`);
    const isOwn = outcome.kind === "exited" || outcome.kind === "signaled";
    if (!isOwn) this.#severe.add(exitCode);
    const cannotStart = ["not_found", "not_executable", "start_failed"].includes(outcome.kind);
    return {
      result: "failed",
      what: how,
      exitCode,
      mayRetry: isOwn || outcome.kind === "time_limit",
      stopsPool: outcome.kind === "breach" || (cannotStart && !isProgramNamedByItem(command)),
      keepsLock: outcome.kind === "breach",
    };
  }
}
