/**
 * Runs a command under a lease, and ensures that its processes are dead before the server can grant the lock to another
 * holder. Does not release the lease. If this process runs only one command, all orphans that baton adopts belong to
 * that command; commands that run at the same time share a table (job_table.ts).
 */
import { fstatSync } from "node:fs";
import process from "node:process";
import { BatonError } from "../../errors.ts";
import { isLeaseRevoked } from "../lease.ts";
import { CleanupScope } from "../../support/abort.ts";
import type { CommandGuard } from "../guard/guard.ts";
import type { GuardedChild } from "../guard/guard_state.ts";
import type { ChildOutcome, SupervisedChildEnding } from "../spawn/child_outcome.ts";
import { ChildRun, type ChildRunOptions } from "./child_run.ts";
import { StoppedBySignal } from "./signal_source.ts";
import {
  checkFirstThreadHasChild,
  jobCookieEnvironment,
  jobCookieVariable,
  readProcess,
} from "../proc/process_table.ts";
import { JobProcesses } from "../proc/job_processes.ts";
import type { JobTable, JobTableEntry } from "../proc/job_table.ts";
import { wasStreamClosedAtStart } from "../spawn/inherited_descriptors.ts";
import { resolveCommand } from "../spawn/resolve_command.ts";
import { raiseLimitForDescriptors } from "../spawn/shell_start.ts";
import { type Libc, loadLibc } from "../libc.ts";
import {
  childEnvironment,
  type CommandPrepareOptions,
  prepareCommand,
  type PreparedCommandStart,
  spawnPreparedCommand,
  type StartedProcess,
} from "../spawn/spawn_child.ts";

export interface SuperviseOptions extends
  Pick<
    ChildRunOptions,
    "lease" | "clock" | "signals" | "killAfterMs" | "stopSignal" | "onDoubt" | "maxHoldMs" | "leavesRunning" | "onEvent"
  >,
  Pick<CommandPrepareOptions, "descriptors" | "signal" | "readsNothing" | "isRead" | "input" | "cwd"> {
  readonly command: readonly string[];
  /**
   * Variables to add to the environment of this process; undefined unsets a variable. The lease's holder ID is appended
   * to the mark.
   */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly guard: CommandGuard;
  /** The time of the grant on `clock`; by default the time of the call. */
  readonly grantedAtMs?: number;
  /** If true, the command runs in baton's own process group, which has the terminal. "auto": if stdin is a terminal. */
  readonly foreground: boolean | "auto";
  /**
   * Called when the command has started. `ended` resolves when the command's own process has ended; processes that it
   * started may still run.
   */
  readonly onStarted?: (child: StartedProcess) => void;
  /**
   * The table of the commands that this process supervises at the same time. These commands share the guard, and the
   * caller ends it.
   */
  readonly beside?: JobTable;
  /**
   * If true, the guard keeps watching after the command's end. The caller must then make the guard forget the command,
   * and must end the guard.
   */
  readonly keepsGuard?: boolean;
}

/** The longest time that a guard may take to start, in milliseconds; a start usually takes a few milliseconds. */
const guardStartMsMax = 10_000;

/** Prepares and runs a command in one call; see `PreparedChild.run`. */
export function superviseChild(options: SuperviseOptions): Promise<ChildOutcome> {
  return new PreparedChild(options).run();
}

interface PreparedStart {
  readonly libc: Libc | null;
  readonly child: PreparedCommandStart;
  /** The reason why the command cannot be started; null if it can. */
  readonly obstacle: SupervisedChildEnding | null;
}

/**
 * A command that is prepared before it has to run, so that it then starts immediately. Its file is found, and the guard
 * is already watching.
 */
export class PreparedChild {
  readonly #options: SuperviseOptions;
  /** The mark of the command's processes. It tells a nested call of baton that the lock is already held. */
  readonly #cookie: string;
  readonly #job: JobTableEntry | undefined;
  readonly #guardKills = new AbortController();
  readonly #preparing: Promise<PreparedStart>;
  #ready: PreparedStart | null = null;
  #grantedAtMs: number;

  constructor(options: SuperviseOptions) {
    this.#options = options;
    this.#cookie = options.lease.holderId;
    this.#job = options.beside?.addJob(this.#cookie);
    this.#grantedAtMs = options.grantedAtMs ?? options.clock.now();
    this.#preparing = this.#prepare();
    this.#preparing.catch(() => {}); // `run` reports the error
  }

  drop(): void {
    void this.#preparing.then(() => this.#finish({ kind: "cancelled" }, null), () => {});
  }

  /**
   * Runs the command; may be called only one time. Resolves when the lease may be released; after a breach, the lease
   * must not be released (see `SupervisedChildEnding`). Rejects only because of a bug.
   */
  async run(): Promise<ChildOutcome> {
    const { clock, guard, beside, signal } = this.#options;
    this.#grantedAtMs = this.#options.grantedAtMs ?? clock.now();
    // A prepared command starts without any wait.
    const { libc, child, obstacle } = this.#ready ?? await this.#preparing.finally(() => beside?.startTurn());
    const newObstacle = obstacle ?? obstacleNow(this.#options, this.#guardKills.signal);
    if (newObstacle !== null) return this.#finish(newObstacle, null);

    const ownGroup = beside !== undefined || !runsCommandInForeground(this.#options.foreground, libc);
    const adopts = libc?.becomeSubreaper() ?? false;
    libc?.restoreChildSignal();
    const job = this.#job;
    const spawned = await spawnPreparedCommand(child, {
      ownGroup,
      onStarted: (pid) => job !== undefined && beside?.markStarted(job, pid),
    });
    if (spawned.kind !== "started") return this.#finish(spawned, null);

    const { pid, ended } = spawned;
    checkFirstThreadHasChild(pid);
    guard.reportChild(this.#cookie, {
      pid,
      ownGroup,
      startTicks: job?.startTicks ?? readProcess(pid)?.startTicks ?? 0,
    });
    const processes = job !== undefined && beside !== undefined && libc !== null && adopts
      ? beside.processesOf(job, libc)
      : new JobProcesses({ pid, ownGroup, cookie: this.#cookie, libc, adopts: adopts && beside === undefined });
    this.#options.onStarted?.(spawned);
    const run = new ChildRun({
      ...this.#options,
      guard: guardForCommand(guard, this.#cookie),
      grantedAtMs: this.#grantedAtMs,
      processes,
      ended,
      ownGroup,
      guardKills: this.#guardKills.signal,
    });
    // The request to stop may have arrived after the start of the process, but before ChildRun listened to signals.
    if (signal?.aborted) processes.signalCommand(signalOf(signal.reason, this.#options.stopSignal));
    const ending = await run.finished;
    return this.#finish(ending, pid);
  }

  async #prepare(): Promise<PreparedStart> {
    const libc = await loadLibc();
    await raiseLimitForDescriptors(this.#options.descriptors);
    const watching = letGuardWatchCommand(this.#options, this.#cookie, this.#guardKills);
    const child = prepareCommand(this.#options.command, startOptions(this.#options, this.#cookie));
    return this.#ready = { libc, child, obstacle: await watching };
  }

  #finish(ending: SupervisedChildEnding, pid: number | null): ChildOutcome {
    const { clock, guard, beside, keepsGuard } = this.#options;
    if (this.#job !== undefined) beside?.removeJob(this.#job);
    reportEndToGuard(guard, this.#cookie, { ending, isBesideOthers: beside !== undefined, keepsGuard });
    return { ...ending, pid, heldMs: clock.now() - this.#grantedAtMs };
  }
}

/**
 * Does what the start of a command needs and its lease does not change, while the caller waits for the lease: loads
 * libc, finds closed streams and the command's file. The start only checks that the file is still there.
 */
export function prepareForCommand([name]: readonly string[]): void {
  void loadLibc();
  for (const fd of [0, 1, 2]) wasStreamClosedAtStart(fd);
  if (name !== undefined) resolveCommand(name, process.env["PATH"]);
}

export function guardForCommand(guard: CommandGuard, cookie: string): ChildRunOptions["guard"] {
  return {
    clearedAfterMs: (signal) => guard.clearedAfterMs(cookie, signal),
    reportKnown: (pids) => guard.reportKnown(cookie, pids),
  };
}

/** Tells the guard that the command has ended. Exported for the test. */
export function reportEndToGuard(
  guard: Pick<CommandGuard, "leave" | "forget" | "end">,
  cookie: string,
  { ending, isBesideOthers = false, keepsGuard = false }: {
    readonly ending: Pick<SupervisedChildEnding, "kind"> & { readonly isDead?: boolean };
    readonly isBesideOthers?: boolean | undefined;
    readonly keepsGuard?: boolean | undefined;
  },
): void {
  // The guard may not find all processes that survive a breach. It must therefore keep the session while they live.
  if (ending.kind === "breach" && !(isBesideOthers && ending.isDead)) return guard.leave(cookie);
  // A guard that replaces a killed one must not watch a job whose lease is about to be released.
  if (isBesideOthers || !keepsGuard) guard.forget(cookie);
  // Does this in a later turn: the caller sends the release in this turn, and the next holder waits for that release.
  if (!isBesideOthers && !keepsGuard) setImmediate(() => guard.end());
}

function startOptions(options: SuperviseOptions, cookie: string): CommandPrepareOptions {
  const outer = options.env[jobCookieVariable] ?? process.env[jobCookieVariable];
  return {
    ...options,
    env: childEnvironment({ ...options.env, ...jobCookieEnvironment(cookie, outer) }),
    // If SIGHUP is the stop signal, the command must not ignore SIGHUP.
    stopSignal: options.stopSignal,
    hangUpIgnored: options.signals.hangUpIgnored && options.stopSignal !== "SIGHUP",
  };
}

/**
 * Lets the guard watch the command, or `child` if it already runs. Resolves with null if the command may start or
 * continue, otherwise with the reason why not. Aborts `guardKills` when the guard kills the command.
 */
export async function letGuardWatchCommand(
  options: Pick<SuperviseOptions, "lease" | "clock" | "guard" | "signal" | "onEvent">,
  cookie: string,
  guardKills: AbortController,
  child?: GuardedChild,
): Promise<SupervisedChildEnding | null> {
  const { lease, clock, guard, signal } = options;
  const late = new AbortController();
  const message = `Cannot start the guard process: no response within ${guardStartMsMax} ms`;
  using _limit = new CleanupScope(
    clock.startTimer(guardStartMsMax, () => late.abort(new BatonError("START_FAILED", message))),
  );
  let isMissing = false;
  const ends = [lease.lost, guardKills.signal, late.signal, ...(signal === undefined ? [] : [signal])];
  try {
    await guard.watch(cookie, {
      remainingMs() {
        clock.noticeSuspend();
        return lease.endMs() - clock.now();
      },
      subscribe: (listener) => lease.subscribe(listener),
      onKill: () => guardKills.abort(),
      onReplaced(missing) {
        if (missing !== null || isMissing) {
          lease.warn?.("guard", missing === null ? "" : "no guard watches its command");
        }
        isMissing = missing !== null;
        options.onEvent?.(missing === null ? { kind: "guard_replaced" } : { kind: "guard_missing", why: missing });
      },
      signal: AbortSignal.any(ends),
      nodes: lease.nodes ?? [],
      ...(child === undefined ? {} : { child }),
    });
  } catch (error) {
    if (!ends.some((end) => end.aborted) || late.signal.aborted) return startFailedEnding(error);
  }
  return obstacleNow(options, guardKills.signal);
}

/**
 * Returns why the command must not start now; null if it may start. No await may come between this check and the start.
 */
function obstacleNow(
  { lease, clock, signal }: Pick<SuperviseOptions, "lease" | "clock" | "signal">,
  guardKills: AbortSignal,
): SupervisedChildEnding | null {
  clock.noticeSuspend();
  if (signal?.aborted) return { kind: "cancelled" };
  if (lease.lost.aborted) return { kind: isLeaseRevoked(lease.lost) ? "revoked" : "lost", child: null };
  return guardKills.aborted || !lease.isHeld() ? { kind: "lost", child: null } : null;
}

function signalOf(reason: unknown, otherwise: NodeJS.Signals): NodeJS.Signals {
  return reason instanceof StoppedBySignal ? reason.signal : otherwise;
}

function startFailedEnding(error: unknown): SupervisedChildEnding {
  if (error instanceof BatonError && error.code === "START_FAILED") {
    return { kind: "start_failed", message: error.message };
  }
  throw error;
}

/**
 * Returns true if the command stays in baton's process group, which has the terminal. "auto" means: if stdin is a
 * terminal, because a new session would take /dev/tty away from ssh and sudo.
 */
export function runsCommandInForeground(wanted: boolean | "auto", libc: Libc | null): boolean {
  if (wanted !== "auto") return wanted;
  try {
    return fstatSync(0).isCharacterDevice() && (libc?.isTerminal(0) ?? false);
  } catch {
    return false; // closed
  }
}
