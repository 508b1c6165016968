/**
 * Runs a command under a lease and keeps the promise that its processes are dead before the server can give the lock to
 * anybody else. Owns the order of things: guard, command, end. Does not release the lease. Of one command everything that is
 * taken in as an orphan is counted as its own; several at a time share a table that tells whose it is (job_table.ts).
 */
import process from "node:process";
import { BatonError } from "../../errors.ts";
import type { Lease } from "../lease.ts";
import type { Clock } from "../../support/clock.ts";
import type { Guard } from "../guard/guard.ts";
import type { GuardedChild } from "../guard/guard_state.ts";
import type { ChildEnd, ChildEnding, ChildOutcome } from "../spawn/child_outcome.ts";
import { type ChildEvent, ChildRun } from "./child_run.ts";
import { StoppedBySignal } from "./stopped_by_signal.ts";
import { cookieEnvironment, cookieVariable } from "../proc/process_marker.ts";
import { isForeground } from "../spawn/foreground.ts";
import { isRevoked } from "./lease_loss.ts";
import { JobProcesses } from "../proc/job_processes.ts";
import type { JobTable, TableJob } from "../proc/job_table.ts";
import { type Libc, loadLibc } from "../libc.ts";
import { waitMinHold } from "./min_hold.ts";
import { noteStarted, readProcess } from "../proc/process_table.ts";
import type { SignalSource } from "./signal_source.ts";
import {
  childEnvironment,
  type ReadyChild,
  readyToSpawn,
  spawnReady,
  type StartOptions,
} from "../spawn/spawn_child.ts";

export interface SuperviseOptions {
  readonly command: readonly string[];
  /** Added to this process's environment; undefined takes a variable away. The lease's holder id is appended to the cookie. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly lease: Lease;
  /** The one the lease's `endMs()` is on. */
  readonly clock: Clock;
  readonly guard: Guard;
  readonly signals: SignalSource;
  /** What `inheritedDescriptors()` found when this process started. */
  readonly descriptors: readonly number[];
  /** On the clock; the moment of the call when left out. */
  readonly grantedAtMs?: number;
  /** From the stop signal to SIGKILL. */
  readonly killAfterMs: number;
  readonly stopSignal: NodeJS.Signals;
  readonly onDoubt: "ignore" | "freeze";
  /** The command is stopped this long after the grant. */
  readonly maxHoldMs?: number | null;
  /** The outcome is not given before this long after the grant, while the lease is held. */
  readonly minHoldMs?: number | null;
  /** In baton's own process group, with the terminal. "auto": if standard input is a terminal. */
  readonly foreground: boolean | "auto";
  /** A request to stop that came before the command was started. Has no effect later: `signals` reach the command. */
  readonly signal?: AbortSignal;
  readonly onEvent?: (event: ChildEvent) => void;
  /** The command runs; `ended` resolves when its own process has ended, with what it left behind still there. */
  readonly onStarted?: (child: StartedChild) => void;
  /** It runs beside others that this process supervises, under the same guard, which the caller ends. */
  readonly beside?: JobTable;
  /** The guard goes on watching it when it is over; the caller forgets it, and ends the guard. */
  readonly keepsGuard?: boolean;
  /** It reads nothing: /dev/null is its standard input. */
  readonly readsNothing?: boolean;
  /** Its standard output is for `onStarted` to read. */
  readonly isRead?: boolean;
  /** The descriptor of a file that is its standard input; it may be closed when `onStarted` was called. */
  readonly input?: number;
  /** Where it begins; where baton is when left out. */
  readonly cwd?: string;
}

export interface StartedChild {
  readonly pid: number;
  readonly ended: Promise<ChildEnd>;
  /** For `isRead`. */
  readonly output: AsyncIterable<Uint8Array> | null;
}

/** A guard is there in milliseconds; one that is not there by then never will be. */
const guardStartMsMax = 10_000;

/** What can be done before the command is to run, so that it then starts at once. */
export interface PreparedChild {
  /** Once. Resolves when the lease may be released, a breach excepted; see `ChildEnding`. Rejects only for a bug. */
  run(): Promise<ChildOutcome>;
  /** It will not be run. */
  drop(): void;
}

/** As `prepareChild` and `run` in one. */
export function superviseChild(options: SuperviseOptions): Promise<ChildOutcome> {
  return prepareChild(options).run();
}

/** Sets the guard to watch what is going to run under the lease. */
export function prepareChild(options: SuperviseOptions): PreparedChild {
  const child = new SupervisedChild(options);
  return { run: () => child.run(), drop: () => child.drop() };
}

interface Readiness {
  readonly libc: Libc | null;
  readonly child: ReadyChild;
  /** Why it cannot be started. */
  readonly obstacle: ChildEnding | null;
}

class SupervisedChild {
  readonly #options: SuperviseOptions;
  /** So that a nested call can tell that this job holds the lock already. */
  readonly #cookie: string;
  readonly #job: TableJob | undefined;
  readonly #guardKills = new AbortController();
  readonly #preparing: Promise<Readiness>;
  #ready: Readiness | null = null;
  #grantedAtMs: number;

  constructor(options: SuperviseOptions) {
    this.#options = options;
    this.#cookie = options.lease.holderId;
    this.#job = options.beside?.open(this.#cookie);
    this.#grantedAtMs = options.grantedAtMs ?? options.clock.now();
    this.#preparing = this.#prepare();
    this.#preparing.catch(() => {}); // whoever runs it hears
  }

  drop(): void {
    void this.#preparing.then(() => this.#finish({ kind: "cancelled" }, null), () => {});
  }

  async run(): Promise<ChildOutcome> {
    const { clock, guard, beside, signal } = this.#options;
    this.#grantedAtMs = this.#options.grantedAtMs ?? clock.now();
    // Where all is ready nothing is waited for up to the start of the command.
    const { libc, child, obstacle } = this.#ready ?? await this.#preparing;
    const hindrance = obstacle ?? hindranceOf(this.#options, this.#guardKills.signal);
    if (hindrance !== null) return this.#finish(hindrance, null);

    const ownGroup = beside !== undefined || !isForeground(this.#options.foreground, libc);
    const adopts = libc?.becomeSubreaper() ?? false;
    libc?.hearOfChildren();
    const job = this.#job;
    const spawned = await spawnReady(child, {
      ownGroup,
      onStarted: (pid) => job !== undefined && beside?.started(job, pid),
    });
    if (spawned.kind !== "started") return this.#finish(spawned, null);

    const { pid, ended } = spawned;
    noteStarted(pid);
    guard.child(this.#cookie, { pid, ownGroup, startTicks: job?.startTicks ?? readProcess(pid)?.startTicks ?? 0 });
    const processes = job !== undefined && beside !== undefined && libc !== null && adopts
      ? beside.processesOf(job, libc)
      : new JobProcesses({ pid, ownGroup, cookie: this.#cookie, libc, adopts: adopts && beside === undefined });
    this.#options.onStarted?.(spawned);
    const run = new ChildRun({
      ...this.#options,
      guard: { clearedAfterMs: (signal) => guard.clearedAfterMs(this.#cookie, signal) },
      grantedAtMs: this.#grantedAtMs,
      processes,
      ended,
      ownGroup,
      struck: this.#guardKills.signal,
    });
    // It came when there was a process already, and nobody yet to hear it for the command.
    if (signal?.aborted) processes.signalCommand(signalOf(signal.reason, this.#options.stopSignal));
    const ending = await run.finished;
    if (ending.kind === "exited" || ending.kind === "signaled") {
      await waitMinHold({ ...this.#options, grantedAtMs: this.#grantedAtMs });
    }
    return this.#finish(ending, pid);
  }

  async #prepare(): Promise<Readiness> {
    const libc = await loadLibc();
    const watching = watchJob(this.#options, this.#cookie, this.#guardKills);
    const child = readyToSpawn(this.#options.command, startOptions(this.#options, this.#cookie));
    return this.#ready = { libc, child, obstacle: await watching };
  }

  #finish(ending: ChildEnding, pid: number | null): ChildOutcome {
    const { clock, guard, beside, keepsGuard } = this.#options;
    if (this.#job !== undefined) beside?.close(this.#job);
    leaveGuard(guard, this.#cookie, { ending, isBesideOthers: beside !== undefined, keepsGuard });
    return { ...ending, pid, heldMs: clock.now() - this.#grantedAtMs };
  }
}

/** What the guard hears when a job is over. Exported for its test. */
export function leaveGuard(
  guard: Pick<Guard, "setSession" | "forget" | "done">,
  cookie: string,
  { ending, isBesideOthers = false, keepsGuard = false }: {
    readonly ending: Pick<ChildEnding, "kind">;
    readonly isBesideOthers?: boolean | undefined;
    readonly keepsGuard?: boolean | undefined;
  },
): void {
  // In a breach the guard is left to itself: the end of its pipe will set it on what is still there. It may not see what is
  // seen here: the session is to expire.
  if (ending.kind === "breach") guard.setSession(null);
  else if (isBesideOthers) guard.forget(cookie);
  // Later than now, for the next in line waits for the release, which the caller sends in this turn; but a job beside
  // others may be run again under the same lease, and the next order to watch must come behind this one.
  else if (!keepsGuard) setImmediate(() => guard.done());
}

function startOptions(options: SuperviseOptions, cookie: string): StartOptions {
  const outer = options.env[cookieVariable] ?? process.env[cookieVariable];
  return {
    env: childEnvironment({ ...options.env, ...cookieEnvironment(cookie, outer) }),
    descriptors: options.descriptors,
    // Who wants the command stopped by this signal wants it heard.
    hangUpIgnored: options.signals.hangUpIgnored && options.stopSignal !== "SIGHUP",
    signal: options.signal,
    readsNothing: options.readsNothing,
    isRead: options.isRead,
    input: options.input,
    cwd: options.cwd,
  };
}

/**
 * Sets the guard to watch, the `child` too where it runs already. Null when the command may be started, or go on, else why
 * not. `struck` aborts when the guard strikes.
 */
export async function watchJob(
  options: Pick<SuperviseOptions, "lease" | "clock" | "guard" | "signal" | "onEvent">,
  cookie: string,
  struck: AbortController,
  child?: GuardedChild,
): Promise<ChildEnding | null> {
  const { lease, clock, guard, signal } = options;
  const late = new AbortController();
  const message = `Cannot start the guard process: it has not answered for ${guardStartMsMax} ms`;
  const cancel = clock.after(guardStartMsMax, () => late.abort(new BatonError("START_FAILED", message)));
  const ends = [lease.lost, struck.signal, late.signal, ...(signal === undefined ? [] : [signal])];
  try {
    await guard.watch(cookie, {
      remainingMs() {
        clock.noticeSuspend();
        return lease.endMs() - clock.now();
      },
      subscribe: (listener) => lease.subscribe(listener),
      onKill: () => struck.abort(),
      onReplaced: (another) => options.onEvent?.({ kind: another ? "guard_replaced" : "guard_missing" }),
      signal: AbortSignal.any(ends),
      ...(child === undefined ? {} : { child }),
    });
  } catch (error) {
    if (!ends.some((end) => end.aborted) || late.signal.aborted) return startFailed(error);
  } finally {
    cancel();
  }
  return hindranceOf(options, struck.signal);
}

/** Why the command must not be started now; null when it may. Nothing may be waited for between this and the start. */
function hindranceOf(
  { lease, clock, signal }: Pick<SuperviseOptions, "lease" | "clock" | "signal">,
  struck: AbortSignal,
): ChildEnding | null {
  clock.noticeSuspend();
  if (signal?.aborted) return { kind: "cancelled" };
  if (lease.lost.aborted) return { kind: isRevoked(lease.lost) ? "revoked" : "lost", child: null };
  return struck.aborted || !lease.isHeld() ? { kind: "lost", child: null } : null;
}

function signalOf(reason: unknown, otherwise: NodeJS.Signals): NodeJS.Signals {
  return reason instanceof StoppedBySignal ? reason.signal : otherwise;
}

function startFailed(error: unknown): ChildEnding {
  if (error instanceof BatonError && error.code === "START_FAILED") {
    return { kind: "start_failed", message: error.message };
  }
  throw error;
}
