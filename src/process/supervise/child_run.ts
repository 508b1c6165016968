/**
 * A command that runs: brings the plan (child_plan.ts) together with the lease, the clock, the processes, the guard and
 * the signals. Whatever happens, the clock is looked at first and the plan asked what that means.
 */
import type { Lease } from "../lease.ts";
import { onAbort } from "../../support/abort.ts";
import type { Clock } from "../../support/clock.ts";
import type { Guard } from "../guard/guard.ts";
import type { ChildEnd, ChildEnding } from "../spawn/child_outcome.ts";
import { lossAtMs, lossMarginMs, planChild, type Situation, type StopReason } from "./child_plan.ts";
import { commandSignals } from "./command_signals.ts";
import type { JobProcesses } from "../proc/job_processes.ts";
import { isRevoked } from "./lease_loss.ts";
import type { SignalSource } from "./signal_source.ts";

/** For a log: what was done to the command, and why. */
export type ChildEvent =
  | { readonly kind: "stopping" | "killing"; readonly reason: StopReason }
  | { readonly kind: "frozen" | "thawed" | "guard_kills" | "guard_replaced" | "guard_missing" };

/** Of a job that runs beside others: what may be its own and may be another's. */
export interface DoubtfulProcesses {
  /** There is something that may be this job's and is not its to end as long as another one that may own it runs. */
  isUndecided(): boolean;
  /** It is this job's now, to be dead in time. */
  claim(): void;
  /** Calls the listener when it may have been decided. Returns what takes it off. */
  subscribe(listener: () => void): () => void;
}

type RunProcesses = Pick<JobProcesses, "alive" | "signalAll" | "signalCommand" | "leaderEnded" | "reapOrphans">;

export interface ChildRunOptions {
  readonly lease: Lease;
  readonly clock: Clock;
  /** In the words of the guard, for this job. */
  readonly guard: { clearedAfterMs(signal: AbortSignal): ReturnType<Guard["clearedAfterMs"]> };
  readonly signals: SignalSource;
  readonly processes: RunProcesses & Partial<DoubtfulProcesses>;
  readonly ended: Promise<ChildEnd>;
  readonly ownGroup: boolean;
  /** Aborts when the guard strikes. */
  readonly struck: AbortSignal;
  readonly grantedAtMs: number;
  readonly killAfterMs: number;
  readonly stopSignal: NodeJS.Signals;
  readonly onDoubt: "ignore" | "freeze";
  readonly maxHoldMs?: number | null;
  readonly onEvent?: (event: ChildEvent) => void;
}

/** Between two looks at processes that are to die: nothing tells of an orphan's death. */
const lookEveryMs = 5;

/** Between two looks at processes that another job may own: its end is told. */
const undecidedLookEveryMs = 250;

/** How long the guard, which was faster, is given to say when it was through. */
const guardReportMs = 2000;

export class ChildRun {
  /** Resolves when nothing of the command is alive any more, or when that was given up. */
  readonly finished: Promise<ChildEnding>;

  readonly #options: ChildRunOptions;
  readonly #finish: (ending: ChildEnding | Promise<ChildEnding>) => void;
  readonly #undo: (() => void)[] = [];
  #cancelTimer = () => {};
  #over = false;
  #frozen = false;
  #goneAtMs: number | null = null;
  #revokedAtMs: number | null = null;
  #killedAtMs: number | null = null;
  #stop: Situation["stop"] = null;
  #end: ChildEnd | null = null;
  /** It ended before anything was done to it, and in time. */
  #endedByItself = false;
  #aliveTooLate = false;

  constructor(options: ChildRunOptions) {
    this.#options = options;
    const { lease, signals, struck, ownGroup, processes } = options;
    const { promise, resolve } = Promise.withResolvers<ChildEnding>();
    this.finished = promise;
    this.#finish = resolve;
    this.#undo.push(
      lease.subscribe(() => this.#leaseMoved()),
      onAbort(lease.lost, () => this.#leaseLost()),
      onAbort(struck, () => this.#guardStruck()),
      processes.subscribe?.(() => this.#end !== null && this.#act()) ?? (() => {}),
      ...commandSignals(ownGroup).map(({ signal, forwarded }) =>
        signals.listen([signal], () => this.#signalled(signal, forwarded))
      ),
    );
    options.ended.then((end) => this.#childEnded(end));
    this.#act();
  }

  #now(): number {
    this.#options.clock.noticeSuspend();
    return this.#options.clock.now();
  }

  #leaseMoved(): void {
    if (this.#over) return;
    this.#options.processes.reapOrphans();
    this.#act();
  }

  #leaseLost(): void {
    if (isRevoked(this.#options.lease.lost)) this.#revokedAtMs ??= this.#now();
    else this.#goneAtMs ??= this.#now();
    this.#act();
  }

  #guardStruck(): void {
    this.#goneAtMs ??= this.#now();
    this.#options.onEvent?.({ kind: "guard_kills" });
    this.#act();
  }

  #signalled(signal: NodeJS.Signals, forwarded: boolean): void {
    this.#act(); // SIGCONT may come after a long pause
    if (this.#over || !forwarded || (signal === "SIGCONT" && this.#frozen)) return;
    this.#options.processes.signalCommand(signal);
  }

  #childEnded(end: ChildEnd): void {
    const nowMs = this.#now();
    const { processes } = this.#options;
    this.#end = end;
    processes.leaderEnded();
    if (this.#over) return;
    const lossMs = lossAtMs(this.#situation(nowMs));
    this.#endedByItself = this.#stop === null && this.#killedAtMs === null && nowMs < lossMs;
    // What was told to stop before may have left others behind, who hear of it now; else it is the plan's to look.
    if (this.#stop !== null && nowMs < lossMs && processes.alive().length > 0) this.#sendStop(this.#stop.reason, nowMs);
    this.#act();
  }

  #situation(nowMs: number): Situation {
    const { lease, killAfterMs, grantedAtMs, maxHoldMs = null, onDoubt } = this.#options;
    return {
      nowMs,
      leaseEndMs: lease.endMs(),
      sessionTimeoutMs: lease.sessionTimeoutMs,
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
    const lastMs = lossAtMs(situation) + lossMarginMs(situation.sessionTimeoutMs);
    let restMs = lookEveryMs;
    if (this.#end !== null || nowMs > lastMs) {
      const { processes } = this.#options;
      if (nowMs >= lossAtMs(situation)) processes.claim?.();
      const alive = processes.alive(); // takes its time where processes come and go
      const isUndecided = alive.length === 0 && (processes.isUndecided?.() ?? false);
      if (alive.length > 0 && nowMs > lastMs) this.#aliveTooLate = true;
      if (alive.length === 0 && !isUndecided && this.#end !== null) return this.#conclude(this.#now() <= lastMs);
      if (isUndecided) restMs = undecidedLookEveryMs;
      else if (this.#stop === null && nowMs < lossAtMs(situation)) return this.#stopAndAct("leftovers", nowMs);
    }
    const plan = planChild(situation);
    switch (plan.action) {
      case "run":
      case "freeze":
        this.#setFrozen(plan.action === "freeze");
        return this.#actAt(this.#end === null ? plan.nextMs : Math.min(plan.nextMs, nowMs + restMs));
      case "stop":
        return this.#stopAndAct(plan.reason, nowMs);
      case "kill":
        this.#sendKill(plan.reason, nowMs);
        return this.#actAt(nowMs + lookEveryMs);
      case "give_up":
        return this.#close({ kind: "breach", child: this.#end, survivors: this.#options.processes.alive() });
    }
  }

  #actAt(atMs: number): void {
    this.#cancelTimer = this.#options.clock.after(atMs - this.#options.clock.now(), () => this.#act());
  }

  #setFrozen(frozen: boolean): void {
    if (frozen === this.#frozen) return;
    this.#frozen = frozen;
    this.#options.processes.signalAll(frozen ? "SIGSTOP" : "SIGCONT");
    this.#options.onEvent?.({ kind: frozen ? "frozen" : "thawed" });
  }

  #stopAndAct(reason: StopReason, nowMs: number): void {
    this.#sendStop(reason, nowMs);
    this.#act();
  }

  #sendStop(reason: StopReason, nowMs: number): void {
    if (reason !== "leftovers") this.#options.processes.claim?.();
    this.#options.onEvent?.({ kind: "stopping", reason });
    this.#stop ??= { reason, atMs: nowMs };
    this.#options.processes.signalAll(this.#options.stopSignal);
    // A stopped process acts on nothing but this; one frozen in doubt stays so.
    if (!this.#frozen) this.#options.processes.signalAll("SIGCONT");
  }

  #sendKill(reason: StopReason, nowMs: number): void {
    if (this.#killedAtMs === null) this.#options.onEvent?.({ kind: "killing", reason });
    this.#killedAtMs ??= nowMs;
    if (reason !== "leftovers") this.#options.processes.claim?.();
    if (reason === "lost" || this.#stop === null) this.#stop = { reason, atMs: this.#stop?.atMs ?? nowMs };
    this.#options.processes.signalAll("SIGKILL");
  }

  /** Nothing is alive. Was it so in time? Where baton itself was asleep only the guard knows. */
  #conclude(inTime: boolean): void {
    const { guard, lease, clock } = this.#options;
    const ending = this.#ending();
    if (inTime) return this.#close(ending);
    const breach: ChildEnding = { kind: "breach", child: this.#end, survivors: [] };
    if (this.#aliveTooLate) return this.#close(breach);
    const patience = new AbortController();
    const cancel = clock.after(guardReportMs, () => patience.abort());
    this.#close(
      guard.clearedAfterMs(patience.signal).then((lateMs) => {
        cancel();
        return lateMs !== null && lateMs <= lossMarginMs(lease.sessionTimeoutMs) ? ending : breach;
      }),
    );
  }

  #ending(): ChildEnding {
    if (this.#end !== null && this.#endedByItself) return this.#end;
    const reason = this.#stop?.reason ?? "lost";
    return { kind: reason === "leftovers" ? "lost" : reason, child: this.#end };
  }

  #close(ending: ChildEnding | Promise<ChildEnding>): void {
    this.#over = true;
    this.#cancelTimer();
    for (const call of this.#undo) call();
    this.#finish(ending);
  }
}
