/**
 * Supervises a running command. At each event of the lease, the clock, the processes, the guard or a signal, asks
 * child_plan.ts for a plan and executes it.
 */
import { isLeaseRevoked, type Lease } from "../lease.ts";
import { CleanupScope, onAbort } from "../../support/abort.ts";
import type { Clock } from "../../support/clock.ts";
import type { CommandGuard } from "../guard/guard.ts";
import type { ChildExitStatus, SupervisedChildEnding } from "../spawn/child_outcome.ts";
import {
  type ChildSituation,
  isChildUnstoppable,
  lockLossAtMs,
  lockLossMarginMs,
  nextKillCheckDelayMs,
  planChild,
  type StopReason,
} from "./child_plan.ts";
import { type SignalSource, signalsWhileCommandRuns } from "./signal_source.ts";
import type { CommandProcesses } from "../proc/job_processes.ts";
import { processName } from "../proc/process_table.ts";

/** An event for a log: what baton did to the command. */
export type SupervisionEvent =
  | { readonly kind: "stopping" | "killing"; readonly reason: StopReason }
  /**
   * The command has ended by itself, and processes that it started have not. baton stopped these processes, or let them
   * continue (`leavesRunning`).
   */
  | { readonly kind: "leftovers_stopped" | "leftovers_left"; readonly processes: readonly NamedProcess[] }
  /**
   * Processes of the command live on after SIGKILL, for example because they belong to another user. baton keeps the
   * lease until they have ended.
   */
  | { readonly kind: "unstoppable"; readonly what: string }
  /** No guard watches the command. If baton is killed now, nothing stops the command. */
  | { readonly kind: "guard_missing"; readonly why: string }
  | { readonly kind: "frozen" | "resumed" | "guard_kills" | "guard_replaced" };

export interface NamedProcess {
  readonly pid: number;
  /** The kernel's name for the process; empty if it is not known. */
  readonly name: string;
}

export type SupervisedProcesses = Pick<CommandProcesses, keyof CommandProcesses>;

export interface ChildRunOptions {
  readonly lease: Lease;
  /** The clock on which the lease's `endMs()` is measured. */
  readonly clock: Clock;
  /** The guard, restricted to this command. */
  readonly guard: {
    clearedAfterMs(signal: AbortSignal): ReturnType<CommandGuard["clearedAfterMs"]>;
    reportKnown?(pids: readonly number[]): void;
  };
  readonly signals: SignalSource;
  readonly processes: SupervisedProcesses;
  readonly ended: Promise<ChildExitStatus>;
  readonly ownGroup: boolean;
  readonly guardKills: AbortSignal;
  readonly grantedAtMs: number;
  /** The time from the stop signal to SIGKILL, in milliseconds. */
  readonly killAfterMs: number;
  readonly stopSignal: NodeJS.Signals;
  readonly onDoubt: "ignore" | "freeze";
  /** The time after the grant at which baton stops the command, in milliseconds; null for no limit. */
  readonly maxHoldMs?: number | null;
  /** If true, processes that outlive the command may continue, without the protection of the lease. */
  readonly leavesRunning?: boolean;
  readonly onEvent?: (event: SupervisionEvent) => void;
}

/**
 * The pause between checks of processes that must die, in milliseconds. The system does not report the death of an
 * orphan.
 */
const checkIntervalMs = 5;

/** The longest pause between checks of processes that live on after SIGKILL, in milliseconds. */
const checkIntervalMsMax = 500;

/** The pause between searches for orphans, in milliseconds. No signal reports a new orphan. */
const orphansEveryMs = 1000;

/**
 * How long processes of a command may outlive the command before baton stops them, in milliseconds. The program at the
 * other end of a pipe, for example, ends at about the same time.
 */
const leftoverGraceMs = 10;

/**
 * The pause between checks of processes that may belong to another command, in milliseconds. baton also checks when
 * another command ends.
 */
const undecidedCheckIntervalMs = 250;

/** If the guard killed the processes before baton did: how long baton waits for the guard's report, in milliseconds. */
const guardReportMs = 2000;

export class ChildRun {
  readonly #finished = Promise.withResolvers<SupervisedChildEnding>();
  /** Resolves when no process of the command is alive, or when baton stops waiting for that. */
  readonly finished = this.#finished.promise;

  readonly #options: ChildRunOptions;
  readonly #listeners = new CleanupScope();
  #cancelTimer = () => {};
  #over = false;
  #frozen = false;
  #goneAtMs: number | null = null;
  #revokedAtMs: number | null = null;
  #killedAtMs: number | null = null;
  #stop: ChildSituation["stop"] = null;
  #end: ChildExitStatus | null = null;
  /** True if the command ended in time, before it was stopped or killed. */
  #endedByItself = false;
  #endedAtMs = Infinity;
  /** The time at which the processes last got a stop signal, or a signal that baton forwarded. */
  #askedAtMs = -Infinity;
  #leftovers: readonly NamedProcess[] = [];
  /** The orphans that the guard knows, and the time at which baton last searched for orphans. */
  #orphans = "";
  #orphansAtMs = -Infinity;
  /** The description of processes that cannot be stopped, as last shown; empty if there are none. */
  #unstoppable = "";
  #aliveTooLate = false;

  constructor(options: ChildRunOptions) {
    this.#options = options;
    const { lease, signals, guardKills, ownGroup, processes } = options;
    this.#listeners.add(
      lease.subscribe(() => this.#onLeaseChanged()),
      onAbort(lease.lost, () => this.#onLeaseLost()),
      onAbort(guardKills, () => this.#onGuardKills()),
      processes.subscribe(() => this.#end !== null && this.#act()),
      ...signalsWhileCommandRuns(ownGroup).map(({ signal, forwarded }) =>
        signals.listen([signal], () => this.#onSignal(signal, forwarded))
      ),
    );
    options.ended.then((end) => this.#onCommandEnded(end));
    this.#act();
  }

  #now(): number {
    this.#options.clock.noticeSuspend();
    return this.#options.clock.now();
  }

  #onLeaseChanged(): void {
    if (this.#over) return;
    this.#reportOrphans();
    this.#act();
  }

  #onLeaseLost(): void {
    if (isLeaseRevoked(this.#options.lease.lost)) this.#revokedAtMs ??= this.#now();
    else this.#goneAtMs ??= this.#now();
    this.#act();
  }

  #onGuardKills(): void {
    this.#goneAtMs ??= this.#now();
    this.#options.onEvent?.({ kind: "guard_kills" });
    this.#act();
  }

  #onSignal(signal: NodeJS.Signals, forwarded: boolean): void {
    this.#act(); // the SIGCONT may have come after a long pause
    if (this.#over || !forwarded || (signal === "SIGCONT" && this.#frozen)) return;
    this.#askedAtMs = this.#now();
    this.#options.processes.signalCommand(signal);
  }

  #onCommandEnded(end: ChildExitStatus): void {
    const nowMs = this.#now();
    const { processes } = this.#options;
    this.#end = end;
    this.#endedAtMs = nowMs;
    this.#orphansAtMs = -Infinity;
    processes.commandEnded();
    if (this.#over) return;
    const lossMs = lockLossAtMs(this.#situation(nowMs));
    this.#endedByItself = this.#stop === null && this.#killedAtMs === null && nowMs < lossMs;
    // Processes that the command started after the stop signal get that signal now. In other cases the plan decides.
    if (this.#stop !== null && nowMs < lossMs && processes.alive().length > 0) this.#sendStop(this.#stop.reason, nowMs);
    this.#act();
  }

  #situation(nowMs: number): ChildSituation {
    const { lease, killAfterMs, grantedAtMs, maxHoldMs = null, onDoubt } = this.#options;
    return {
      nowMs,
      leaseEndMs: lease.endMs(),
      sessionTimeoutMs: lease.sessionTimeoutMs,
      isLocal: lease.isLocal ?? false,
      killAfterMs,
      grantedAtMs,
      maxHoldMs,
      freezeOnDoubt: onDoubt === "freeze",
      inDoubt: lease.inDoubt(),
      goneAtMs: this.#goneAtMs,
      revokedAtMs: this.#revokedAtMs,
      stop: this.#stop,
      killedAtMs: this.#killedAtMs,
    };
  }

  #act(): void {
    if (this.#over) return;
    this.#cancelTimer();
    const nowMs = this.#now();
    const situation = this.#situation(nowMs);
    const lastMs = lockLossAtMs(situation) + lockLossMarginMs(situation.sessionTimeoutMs);
    let waitMs = checkIntervalMs;
    if (this.#end !== null || nowMs > lastMs) {
      const { processes } = this.#options;
      if (nowMs >= lockLossAtMs(situation)) processes.claimUndecided();
      const alive = processes.alive(); // this is slow if processes start and end often
      const isUndecided = alive.length === 0 && processes.isUndecided();
      if (alive.length > 0 && nowMs > lastMs) this.#aliveTooLate = true;
      if (alive.length === 0 && !isUndecided && this.#end !== null) return this.#conclude(this.#now() <= lastMs);
      if (isUndecided) waitMs = undecidedCheckIntervalMs;
      else if (this.#stop === null && nowMs < lockLossAtMs(situation) && nowMs >= this.#endedAtMs + leftoverGraceMs) {
        return this.#endLeftovers(alive, nowMs);
      }
    }
    const plan = planChild(situation);
    switch (plan.action) {
      case "run":
      case "freeze":
        this.#setFrozen(plan.action === "freeze");
        if (nowMs >= this.#orphansAtMs + orphansEveryMs) this.#reportOrphans();
        return this.#actAt(Math.min(plan.nextMs, nowMs + (this.#end === null ? orphansEveryMs : waitMs)));
      case "stop":
        return this.#stopAndAct(plan.reason, nowMs);
      case "kill":
        this.#sendKill(plan.reason, nowMs);
        if (isChildUnstoppable(situation)) void this.#showUnstoppable();
        return this.#actAt(
          nowMs + nextKillCheckDelayMs(situation, { firstMs: checkIntervalMs, maxMs: checkIntervalMsMax }),
        );
      case "give_up":
        return this.#giveUp();
    }
  }

  /**
   * Reports orphans to the guard. If this process dies, the guard cannot find orphans without a mark, such as a sudo,
   * by itself.
   */
  #reportOrphans(): void {
    const orphans = this.#options.processes.reapOrphans();
    this.#orphansAtMs = this.#options.clock.now();
    const text = orphans.join(" ");
    if (text === this.#orphans || this.#killedAtMs !== null) return;
    this.#orphans = text;
    this.#options.guard.reportKnown?.(orphans);
  }

  #actAt(atMs: number): void {
    this.#cancelTimer = this.#options.clock.startTimer(atMs - this.#options.clock.now(), () => this.#act());
  }

  #setFrozen(frozen: boolean): void {
    if (frozen === this.#frozen) return;
    this.#frozen = frozen;
    this.#options.processes.signalAll(frozen ? "SIGSTOP" : "SIGCONT");
    this.#options.onEvent?.({ kind: frozen ? "frozen" : "resumed" });
  }

  #stopAndAct(reason: StopReason, nowMs: number): void {
    this.#sendStop(reason, nowMs);
    this.#act();
  }

  /** Stops the living processes of a command that has ended by itself, or lets them continue. */
  #endLeftovers(alive: readonly number[], nowMs: number): void {
    this.#leftovers = alive.map((pid) => ({ pid, name: processName(pid) }));
    if (this.#options.leavesRunning !== true) return this.#stopAndAct("leftovers", nowMs);
    this.#options.onEvent?.({ kind: "leftovers_left", processes: this.#leftovers });
    this.#close(this.#ending());
  }

  #sendStop(reason: StopReason, nowMs: number): void {
    if (reason !== "leftovers") this.#options.processes.claimUndecided();
    this.#options.onEvent?.({ kind: "stopping", reason });
    this.#stop ??= { reason, atMs: nowMs };
    // The shell of a line ends immediately after the signal. The program in the line got the signal too, and may need
    // time to end.
    const isRepeated = this.#end !== null && nowMs < this.#askedAtMs + this.#options.killAfterMs;
    this.#askedAtMs = nowMs;
    this.#options.processes.signalAll(this.#options.stopSignal, { isRepeated });
    // A stopped process reacts to no other signal, so baton resumes it. A process that is frozen because the lock is in
    // doubt stays frozen.
    if (!this.#frozen) this.#options.processes.signalAll("SIGCONT");
  }

  #sendKill(reason: StopReason, nowMs: number): void {
    if (this.#killedAtMs === null) this.#options.onEvent?.({ kind: "killing", reason });
    this.#killedAtMs ??= nowMs;
    if (reason !== "leftovers") this.#options.processes.claimUndecided();
    if (reason === "lost" || this.#stop === null) this.#stop = { reason, atMs: this.#stop?.atMs ?? nowMs };
    this.#options.processes.signalAll("SIGKILL");
  }

  #giveUp(): void {
    const survivors = this.#options.processes.alive();
    this.#options.guard.reportKnown?.(survivors);
    this.#close({ kind: "breach", child: this.#end, survivors, isDead: false });
  }

  async #showUnstoppable(): Promise<void> {
    const { describeUnstoppableProcesses } = await import("../proc/unstoppable.ts"); // few commands need it
    if (this.#over) return;
    const alive = this.#options.processes.alive();
    const what = describeUnstoppableProcesses(alive);
    if (what === "" || what === this.#unstoppable) return;
    if (this.#unstoppable === "") this.#options.onEvent?.({ kind: "unstoppable", what });
    this.#unstoppable = what;
    this.#options.guard.reportKnown?.(alive);
    this.#options.lease.warn?.("processes", what);
  }

  /**
   * Ends the supervision when no process is alive. If baton was suspended, only the guard knows whether the processes
   * died in time.
   */
  #conclude(inTime: boolean): void {
    const { guard, lease, clock } = this.#options;
    const ending = this.#ending();
    if (this.#leftovers.length > 0 && ending === this.#end) {
      this.#options.onEvent?.({ kind: "leftovers_stopped", processes: this.#leftovers });
    }
    if (inTime) return this.#close(ending);
    const breach: SupervisedChildEnding = { kind: "breach", child: this.#end, survivors: [], isDead: true };
    if (this.#aliveTooLate) return this.#close(breach);
    const limit = new AbortController();
    const cancel = clock.startTimer(guardReportMs, () => limit.abort());
    this.#close(
      guard.clearedAfterMs(limit.signal).then((lateMs) => {
        cancel();
        return lateMs !== null && lateMs <= lockLossMarginMs(lease.sessionTimeoutMs) ? ending : breach;
      }),
    );
  }

  #ending(): SupervisedChildEnding {
    if (this.#end !== null && this.#endedByItself) return this.#end;
    const reason = this.#stop?.reason ?? "lost";
    return { kind: reason === "leftovers" ? "lost" : reason, child: this.#end };
  }

  #close(ending: SupervisedChildEnding | Promise<SupervisedChildEnding>): void {
    this.#over = true;
    this.#cancelTimer();
    this.#listeners[Symbol.dispose]();
    this.#finished.resolve(ending);
  }
}
