/**
 * Judges the commands under locks: when the server may give a lock to another holder, no process of the holder's
 * command is alive; and no process of anybody else is ever signalled. Knows what is on the keeper's disk, and every
 * process in truth.
 */
import type { ZNode } from "../../../../src/coordination/keeper/state/tree.ts";
import type { Lease } from "../../../../src/base/process/lease.ts";
import type { ChildOutcome } from "../../../../src/base/process/spawn/child_outcome.ts";
import type { SupervisionEvent } from "../../../../src/base/process/supervise/child_run.ts";
import type { SuperviseOptions } from "../../../../src/base/process/supervise/supervise_child.ts";
import { grantOf, grantsOf, isInForce } from "../lock/lock_oracle.ts";
import type { StoredTree, TreeObserver } from "../../../world/stored_tree.ts";
import type { OsProcess, SignalName } from "../../../world/sim_os.ts";
import type { SimProcess } from "../../../world/sim_process.ts";
import type { SimWorld } from "../../../world/sim_world.ts";
import { BatonProcess, type GuardProcess } from "./baton_process.ts";
import type { JobPlan } from "./job_programs.ts";

export type JobTerms = Pick<
  SuperviseOptions,
  "killAfterMs" | "onDoubt" | "foreground" | "leavesRunning" | "maxHoldMs" | "stopSignal"
>;

type JobFacts = Pick<JobTruth, "baton" | "lease" | "plan" | "terms" | "isScript">;

/** A command under a lock, and what is true of it. */
export class JobTruth {
  readonly baton: BatonProcess;
  readonly lease: Lease;
  readonly plan: JobPlan;
  readonly terms: JobTerms;
  command: OsProcess | null = null;
  /** When baton or its guard sent the command a signal first. */
  signalledAtMs = Infinity;
  /** When baton has told its guard which process the command is. */
  reportedAtMs = Infinity;
  /** When baton has told the command to end first. */
  toldAtMs = Infinity;
  hasGuardKilled = false;
  outcome: ChildOutcome | null = null;
  /** Processes that the command left behind run on, as asked for. */
  hasLeftSome = false;
  /** The command is a script that runs already: it does not work under the lock before it is told. */
  readonly isScript: boolean;
  isToldOfLock = false;
  /** When baton has released the lock because the script wanted to go on without it. */
  releasedAtMs = Infinity;
  /** When neither baton nor its guard ran last. */
  aloneAtMs = -Infinity;
  /** When its lock was no longer in force, as far as it was looked at. */
  lostAtMs = Infinity;

  constructor({ baton, lease, plan, terms, isScript }: JobFacts) {
    this.baton = baton;
    this.lease = lease;
    this.plan = plan;
    this.terms = terms;
    this.isScript = isScript;
  }

  started(command: OsProcess): void {
    this.command = command;
  }

  /** baton gives back what the script no longer wants. */
  released(): void {
    this.releasedAtMs = this.baton.os.nowMs;
  }

  /** The processes that run under the lock. */
  live(): OsProcess[] {
    if (this.isScript && (!this.isToldOfLock || this.releasedAtMs < Infinity)) return [];
    return [...this.baton.os.processes.values()].filter((one) => one.owner === this && one.isAlive);
  }
}

/** The time that a process which has just been resumed has to kill, in milliseconds. */
const killMs = 250;
/** The same after the machine was suspended: poll(2) does not notice that. */
const afterSuspendMs = 1500;
/** The longest start of a command that fits into the margin of a lease, in milliseconds. */
const startMsMax = 500;
/** The longest time for which a guard waits for such a process. */
const guardWaitsMs = 9000;
const checkEveryMs = 250;
/** The time within which baton remembers a descendant of a script, in milliseconds. */
const rememberMs = 400;
/** The time until a signal and what follows it have been sent, in milliseconds. */
const signalMs = 5;

export class JobOracle implements TreeObserver {
  readonly #world: SimWorld;
  readonly #tree: StoredTree;
  readonly #jobs = new Set<JobTruth>();
  readonly #batons = new Set<BatonProcess>();
  readonly #isCalm: boolean;
  #hasGrantChanged = false;

  /** `isCalm`: the servers always respond. */
  constructor(world: SimWorld, tree: StoredTree, { isCalm }: { readonly isCalm: boolean }) {
    this.#world = world;
    this.#isCalm = isCalm;
    this.#tree = tree;
    tree.observers.push(this);
    const check = () => {
      this.#checkAll();
      world.after(checkEveryMs, check);
    };
    world.after(checkEveryMs, check);
  }

  /** A baton whose command runs. */
  get holder(): BatonProcess | undefined {
    for (const { baton, command, outcome } of this.#jobs) {
      if (baton.isAlive && outcome === null && command !== null) return baton;
    }
    return undefined;
  }

  begin(facts: JobFacts): JobTruth {
    const job = new JobTruth(facts);
    this.#jobs.add(job);
    this.#batons.add(job.baton);
    return job;
  }

  /** baton's supervision is over: it releases the lock, except after a breach. */
  ended(job: JobTruth, outcome: ChildOutcome): void {
    job.outcome = outcome;
    this.#world.count(`mark ended: ${outcome.kind}`);
    this.#world.log(() => `${job.baton.process.name}: the command ended: ${JSON.stringify(outcome)}`);
    const { command } = job;
    const fail = (what: string) =>
      this.#world.fail("wrong ending", `${job.baton.process.name}: ${outcome.kind}, but ${what}`);
    const zombies = job.baton.own.children.filter(({ state, owner }) => state === "zombie" && owner === job);
    if (zombies.length > 0 && !job.hasLeftSome && outcome.kind !== "breach") {
      fail(`zombies are left: ${zombies.map(({ pid }) => pid).join(", ")}`);
    }
    if (command?.isAlive === true && job.live().includes(command) && outcome.kind !== "breach") {
      fail("the command runs");
    }
    if (outcome.kind === "exited" && !job.isScript && command?.exit?.code !== outcome.code) {
      fail(`it ended with ${command?.exit?.code}`);
    }
    if (outcome.kind === "signaled" && command?.exit?.signal !== outcome.signal) {
      fail(`it ended by ${command?.exit?.signal}`);
    }
    const isToldToEnd = job.toldAtMs < Infinity && !job.baton.hasCaughtSignal;
    if ((outcome.kind === "exited" || outcome.kind === "signaled") && isToldToEnd) fail("it was told to end");
    this.#judgeLimit(job, outcome, fail);
    if (outcome.kind === "time_limit" && command?.exit?.signal === "SIGKILL" && endsWhenTold(job)) {
      fail("it was killed although it ends when it is told to");
    }
    if (outcome.kind === "cancelled" && command !== null && !job.isScript) fail("the command was started");
  }

  /** A command is stopped at the limit of its hold, and not before. */
  #judgeLimit(
    { baton, command, terms: { maxHoldMs = null } }: JobTruth,
    outcome: ChildOutcome,
    fail: (what: string) => void,
  ): void {
    if (outcome.kind === "time_limit" && maxHoldMs === null) return fail("there is no limit");
    if (maxHoldMs === null) return;
    if (outcome.kind === "time_limit" && outcome.heldMs < maxHoldMs) {
      return fail(`it was held for ${outcome.heldMs} of ${maxHoldMs} ms`);
    }
    if ((outcome.kind !== "exited" && outcome.kind !== "signaled") || command === null) return;
    const { process } = baton;
    const ranMs = outcome.heldMs - (baton.os.nowMs - command.endedAtMs);
    const overMs = ranMs - maxHoldMs - killMs - 20 * process.machine.turnMs;
    const sinceMs = Math.max(process.runsSinceMs, process.machine.wokenAtMs);
    if (overMs > 0 && sinceMs < command.endedAtMs - killMs - overMs) fail(`it ran for ${ranMs} of ${maxHoldMs} ms`);
  }

  /** A command that is told to end has the time for it as long as its lock is held, and no second signal came. */
  #judgeGrace(job: JobTruth): void {
    const { baton, lease, toldAtMs, terms: { killAfterMs } } = job;
    if (toldAtMs === Infinity) return; // the loss of its lock leaves no time
    const { machine } = baton.process;
    const hadMs = this.#world.nowMs - toldAtMs;
    if (hadMs >= killAfterMs * 0.97 - signalMs || !lease.isHeld() || job.hasGuardKilled || baton.hasCaughtSignal) {
      return;
    }
    if (machine.wokenAtMs < toldAtMs) {
      this.#world.fail("killed too early", `${hadMs} of ${killAfterMs} ms after the signal`);
    }
  }

  /** baton has done this to the command. */
  happened(job: JobTruth, { kind }: SupervisionEvent): void {
    if (kind === "leftovers_left") job.hasLeftSome = true;
    const left = (why: string) => this.#world.fail("left stopped", `a process of ${job.baton.process.name}: ${why}`);
    const stopsItself = job.plan.habits.includes("stops itself");
    const isStopped = job.command?.isAlive === true && job.command.isStopped;
    if (kind === "resumed" && isStopped && !stopsItself) left("its lock is no longer in doubt");
    if (kind !== "stopping" || job.terms.onDoubt === "freeze") return;
    const { stopSignal } = job.terms;
    this.#world.after(signalMs, () => {
      if (job.live().some((one) => one.isStopped && !one.isKilled && one.pending.includes(stopSignal))) {
        left(`it was sent ${stopSignal}`);
      }
    });
  }

  /** A process signals another one. */
  signalled(by: OsProcess, to: OsProcess, signal: SignalName): void {
    if (!to.isAlive || to === by) return;
    const { owner } = to;
    if (owner instanceof JobTruth && owner.baton === by.owner && !isReleased(owner, this.#world.nowMs)) {
      if (to === owner.command) owner.signalledAtMs = Math.min(owner.signalledAtMs, this.#world.nowMs);
      if (to === owner.command && signal === owner.terms.stopSignal) {
        owner.toldAtMs = Math.min(owner.toldAtMs, this.#world.nowMs);
      }
      if (signal === "SIGKILL") this.#killed(by, to, owner);
      return;
    }
    if (owner === by.owner && owner !== null) return;
    if (this.#stoodStillMeanwhile(by, to)) {
      return this.#world.count("mark outside the promise: a group's number was used again while the guard stood still");
    }
    this.#world.fail(
      "stranger signalled",
      `${by.pid} ${by.program.args[0]} sent ${signal} to ${to.pid} ${to.program.args[0]}`,
    );
  }

  #killed(by: OsProcess, to: OsProcess, job: JobTruth): void {
    if (to.isHeldBySystem) this.#world.count("mark process killed while it waits in the kernel");
    if (by.program.args[0] === "lock-guard") {
      job.hasGuardKilled = true;
      this.#world.count("mark guard kills a process");
    } else if (to === job.command) this.#judgeGrace(job);
  }

  /**
   * A guard that stands still cannot see that a group ends, and that its number is given to another one whose first
   * process ends, too.
   */
  #stoodStillMeanwhile(by: OsProcess, to: OsProcess): boolean {
    if (!(by.owner instanceof BatonProcess)) return false;
    const { guards, jobs } = by.owner;
    const guard = guards.find(({ own }) => own === by);
    if (guard === undefined || this.#world.nowMs > guard.sim.runsSinceMs + killMs) return false;
    return to.forkedAtMs < guard.sim.runsSinceMs && [...jobs.values()].some(({ command }) => command?.pid === to.group);
  }

  nodeChanges(before: ZNode | undefined, after: ZNode | undefined): void {
    this.#hasGrantChanged ||= (before ?? after)?.path.includes("/h/") === true;
  }

  committed(): void {
    if (!this.#hasGrantChanged) return;
    this.#hasGrantChanged = false;
    this.#checkAll();
  }

  /** Nothing is left when everybody has been served. */
  checkNothingLeft(): void {
    for (const { guards, isAlive } of this.#batons) {
      if (isAlive) continue;
      for (const { sim, life, keepsSession } of guards) {
        if (sim.life === life && !keepsSession) this.#world.fail("guard left", sim.name);
      }
    }
  }

  #checkAll(): void {
    for (const job of [...this.#jobs]) {
      if (this.#isInForce(job.lease)) {
        if (!isAttended(job, this.#world.nowMs)) job.aloneAtMs = this.#world.nowMs;
        continue;
      }
      job.lostAtMs = Math.min(job.lostAtMs, this.#world.nowMs);
      const live = job.live();
      if (live.length === 0) {
        if (job.outcome !== null || !job.baton.isAlive) this.#jobs.delete(job);
        continue;
      }
      for (const one of live) this.#judge(job, one);
    }
  }

  #isInForce(lease: Lease): boolean {
    const own = grantOf(this.#tree, lease);
    return own !== undefined && isInForce(own, grantsOf(this.#tree, lease.path), lease);
  }

  /** The lock may be another one's, and the process is alive. */
  #judge(job: JobTruth, one: OsProcess): void {
    const reason = this.#exemption(job, one);
    if (reason !== null) return this.#world.count(`mark outside the promise: ${reason}`);
    const { process } = job.baton;
    this.#world.fail(
      "process outlived its lock",
      `${one.pid} ${one.program.args[0]} of ${process.name} under ${job.lease.path}, token ${job.lease.fencingToken}`,
    );
  }

  /** Why the promise does not hold for this process now (docs/limits.md); null: it does. */
  #exemption(job: JobTruth, one: OsProcess): string | null {
    const { baton, outcome } = job;
    const { nowMs } = this.#world;
    const { machine } = baton.process;
    if (job.hasLeftSome) return "left running";
    // baton has given the lock back itself.
    if (outcome !== null && outcome.kind !== "breach") {
      if (job.isScript && isHidden(one, job) && isForgotten(one, job)) return "a daemon that is no child of baton's";
      if (job.isScript) return one.isAfterWrap ? "the numbers of processes have started again" : null;
      return isHidden(one, job) && mayBeAnothers(one, job) ? "a daemon of one of several commands" : null;
    }
    // Its guard has given the lock back, which was certain that nothing is left.
    if (baton.guards.some(({ endsSession }) => endsSession)) {
      return isHidden(one, job) ? "a daemon that the guard cannot find" : null;
    }
    if (machine.isSuspended || nowMs < machine.wokenAtMs + afterSuspendMs) return "suspended machine";
    if (one.isOthers || nowMs < one.waitsUntilMs + killMs) return this.#exemptionOfUnstoppable(job, one);
    const needMs = killMs + 20 * machine.turnMs;
    // While baton waits for its child to be another program, turns pile up, as while it is stopped.
    const ableSinceMs = Math.max(baton.process.runsSinceMs, baton.blockedUntilMs);
    const isBatonAble = baton.isAlive && outcome === null && isAble(baton.process, ableSinceMs, nowMs - needMs);
    if (isStartedLate(job, nowMs, isBatonAble)) return "became the command late";
    if (job.isScript && isHidden(one, job) && isForgotten(one, job)) return "a daemon that is no child of baton's";
    if (isBatonAble) return null;
    if (isHidden(one, job)) return "a daemon that the guard cannot find";
    const isGuarded = baton.guards.some((guard) => guard.hasFinished || isGuardAble(guard, nowMs - needMs));
    return isGuarded ? null : "neither baton nor guard runs";
  }

  /** For a process that SIGKILL does not end: baton, or its guard, keeps the session while a server responds. */
  #exemptionOfUnstoppable(job: JobTruth, one: OsProcess): string | null {
    if (isHidden(one, job)) return "a daemon that the guard cannot find";
    const sinceMs = job.lostAtMs - job.lease.sessionTimeoutMs - afterSuspendMs;
    if (job.aloneAtMs > sinceMs) return "neither baton nor guard runs";
    if (isStartedLate(job, this.#world.nowMs, false)) return "became the command late";
    // Only its group tells whose process it is.
    const isToldLate = !job.isScript && job.reportedAtMs > (job.command?.forkedAtMs ?? 0) + startMsMax;
    if (isToldLate && one.isOthers && job.reportedAtMs > sinceMs) return "a daemon that the guard cannot find";
    return this.#isCalm ? null : "cannot be stopped, and the servers may not have responded";
  }
}

/**
 * Somebody can keep the session of the job. The guard of a baton that hangs, and is neither dead nor stopped, does not.
 */
function isAttended({ baton }: JobTruth, nowMs: number): boolean {
  if (baton.isAlive && baton.process.state === "running") return baton.blockedUntilMs <= nowMs;
  return baton.guards.some(({ sim, life, readyMs }) =>
    sim.life === life && sim.state === "running" && readyMs < Infinity
  );
}

/** baton and its guard know that the script has no lock. When baton dies before, the guard kills the script. */
function isReleased({ releasedAtMs, outcome, baton }: JobTruth, nowMs: number): boolean {
  return nowMs > releasedAtMs + signalMs && (outcome !== null || baton.isAlive);
}

function isAble({ state }: SimProcess, sinceMs: number, atMs: number): boolean {
  return state === "running" && sinceMs <= atMs;
}

function isGuardAble({ sim, life, readyMs }: GuardProcess, atMs: number): boolean {
  return sim.life === life && isAble(sim, Math.max(readyMs, sim.runsSinceMs), atMs);
}

/** Nobody can tell a process that is being started from any other copy of baton before it shows its mark. */
function isStartedLate({ command }: JobTruth, nowMs: number, isBatonAble: boolean): boolean {
  if (command === null) return false;
  const tookMs = command.isCopy ? nowMs - command.forkedAtMs : command.startedLateMs;
  if (tookMs <= startMsMax) return false;
  return command.isCopy || nowMs < command.forkedAtMs + tookMs + killMs || (!isBatonAble && tookMs > guardWaitsMs);
}

/** The command has no habit that keeps it from ending at the stop signal. */
function endsWhenTold({ plan, terms, baton, signalledAtMs }: JobTruth): boolean {
  const { machine } = baton.process;
  const isSlow = plan.habits.some((habit) => ["stubborn", "slow to end", "waits in the kernel"].includes(habit));
  return !isSlow && terms.onDoubt === "ignore" && machine.wokenAtMs < signalledAtMs;
}

/** Another command of the same baton runs, and was there when the process was started: nobody can tell whose it is. */
function mayBeAnothers(one: OsProcess, job: JobTruth): boolean {
  return [...job.baton.jobs.values()].some(({ outcome, command }) =>
    outcome === null && command !== null && command.forkedAtMs <= one.forkedAtMs
  );
}

/** Its group and its environment do not tell whose it is. A subshell of a script has no mark. */
function isHidden(one: OsProcess, job: JobTruth): boolean {
  const { command, lease, terms } = job;
  if (one === command || one.program.environ.includes(lease.holderId)) return false;
  if (job.isScript) return true;
  return terms.foreground === true || one.group !== command?.pid;
}

/**
 * It, or an ancestor, had lost its parent before baton could remember it as a descendant of the script
 * (docs/limits.md).
 */
function isForgotten(one: OsProcess, job: JobTruth): boolean {
  const { runsSinceMs, machine } = job.baton.process;
  for (let at: OsProcess | null = one; at !== null && at.owner === job; at = at.parent) {
    if (at.orphanedAtMs < Math.max(at.forkedAtMs, runsSinceMs, machine.wokenAtMs) + rememberMs) return true;
  }
  return false;
}
