/**
 * A `baton lock` as a simulated process, with its guard as another one: what commands/coordination/locked_job.ts does,
 * again and again.
 */
import { closeCoordinationSession } from "../../../../src/coordination/connect/command_session.ts";
import { acquireLock, type AcquireLockOptions } from "../../../../src/coordination/lock/acquire_lock.ts";
import type { Lease, LockMode } from "../../../../src/base/process/lease.ts";
import { type CommandGuard, startGuard } from "../../../../src/base/process/guard/guard.ts";
import { JobTable } from "../../../../src/base/process/proc/job_table.ts";
import type { ChildOutcome } from "../../../../src/base/process/spawn/child_outcome.ts";
import {
  type SignalSource,
  StoppedBySignal,
  StopRequestListener,
} from "../../../../src/base/process/supervise/signal_source.ts";
import { superviseChild, type SuperviseOptions } from "../../../../src/base/process/supervise/supervise_child.ts";
import { ScriptWatch } from "../../../../src/coordination/hold/script_process.ts";
import { holderSignals, superviseScript } from "../../../../src/coordination/hold/supervise_script.ts";
import { rejectOnAbort } from "../../../../src/base/support/abort.ts";
import { connectToZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper_client.ts";
import { encodeSessionHandle } from "../../../../src/protocols/zookeeper/end_session.ts";
import type { ZooKeeper } from "../../../../src/protocols/zookeeper/zookeeper.ts";
import { type ClientWorld, isExpected } from "../../../world/recipe_client.ts";
import type { Chance } from "../../../world/chance.ts";
import type { SimProcess, SimProgram } from "../../../world/sim_process.ts";
import { BatonProcess, type JobPlaces } from "./baton_process.ts";
import { HeldScript } from "./held_script.ts";
import type { Habit, JobPlan } from "./job_programs.ts";
import type { JobOracle, JobTruth } from "./job_oracle.ts";

export interface JobSettings {
  readonly sessionTimeoutMs: number;
  readonly names: readonly string[];
  readonly modes: readonly LockMode[];
  readonly limit: number;
  /** The longest run of a command, in milliseconds. */
  readonly jobMsMax: number;
  readonly habits: readonly Habit[];
  readonly killAfterMs: number;
  readonly freezes: boolean;
  readonly isForeground: boolean;
  readonly leavesRunning: boolean;
  /** Commands of one baton at the same time, as in a pool. */
  readonly jobs: number;
  /** The commands are scripts with `baton hold`. */
  readonly isHold: boolean;
  /** Whether commands start processes of another user: "calm" if the servers always respond. */
  readonly others?: "none" | "calm" | "some";
  /** The longest pause between two calls, in milliseconds. */
  readonly pauseMsMax: number;
}

export interface JobWorld extends ClientWorld, JobPlaces {
  readonly oracle: JobOracle;
  readonly settings: JobSettings;
}

/** The program ends with the call; the next one begins after a pause, until one was served at the quiet end. */
export function batonProgram(shared: JobWorld): SimProgram {
  return async (process) => {
    if (shared.served.has(process.name)) return void shared.done.add(process.name);
    const baton = new BatonProcess(process, shared);
    const call = new LockCall(baton, shared);
    const { world } = process;
    process.whenDead((how) => {
      if (how === "lost" || shared.done.has(process.name)) return;
      world.after(call.chance.between(1, shared.settings.pauseMsMax), () => process.start());
    });
    try {
      await call.run();
    } catch (error) {
      if (!(error instanceof StoppedBySignal) && !isExpected(error)) throw error;
      world.log(() => `${process.name}: ${(error as Error).message}`);
    }
    await baton.helpersEnd();
    process.exit();
    if (shared.served.has(process.name)) shared.done.add(process.name);
  };
}

const neverAborted = new AbortController().signal;

/** The lease, and a call when it is released. */
function watched(lease: Lease, onRelease: () => void): Lease {
  return new Proxy(lease, {
    get(target, name) {
      if (name === "release") onRelease();
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

/** A lock that a command runs under. `beside`: the table of the commands of this baton. */
interface HeldLock {
  readonly lease: Lease;
  readonly guard: CommandGuard;
  readonly stop: AbortSignal;
  /** Holds the lock with `baton hold`. */
  readonly script?: HeldScript | null;
  readonly signals: SignalSource;
  readonly beside?: JobTable;
}

class LockCall {
  readonly chance: Chance;
  readonly #baton: BatonProcess;
  readonly #process: SimProcess;
  readonly #shared: JobWorld;

  constructor(baton: BatonProcess, shared: JobWorld) {
    const { process } = baton;
    this.#baton = baton;
    this.#process = process;
    this.#shared = shared;
    this.chance = process.world.chance.fork(`call ${process.name} ${process.life}`);
  }

  async run(): Promise<void> {
    const { network, servers, options: { sessionTimeoutMs }, isQuiet } = this.#shared;
    const process = this.#process;
    const { clock } = process;
    const wasQuiet = isQuiet();
    const script = this.#startScript();
    // The end of the script ends the wait for the lock.
    using watch = script === null ? null : new ScriptWatch(script.process, clock);
    const ended = new AbortController();
    watch?.ended.then(() => script?.truth === null && ended.abort());
    using signals = script === null ? null : holderSignals(this.#baton.signals, ended.signal);
    using stop = new StopRequestListener(signals ?? this.#baton.signals);
    const guard = startGuard(() => {}, (onLine) => this.#baton.startGuard(onLine), clock);
    let isGuarded = false;
    let zk: ZooKeeper | null = null;
    try {
      const dial = network.dial(process);
      const opened = await rejectOnAbort(connectToZooKeeper({ servers, clock, dial, sessionTimeoutMs }), stop.signal);
      zk = opened;
      guard.setSession(encodeSessionHandle({ servers }, opened.session));
      if (this.#shared.settings.jobs > 1) {
        const end = await this.#several(opened, guard, stop.signal);
        if (end.hasBreach) {
          isGuarded = true;
          zk = null;
        } else if (wasQuiet && end.hasExited) this.#shared.served.add(process.name);
        return;
      }
      const lease = await this.#acquire(opened, this.chance.oneOf(this.#shared.settings.names), stop.signal);
      const running = this.#runUnder({
        lease,
        guard,
        stop: stop.signal,
        script,
        signals: signals ?? this.#baton.signals,
      });
      isGuarded = true;
      const outcome = await running;
      if (wasQuiet && outcome.kind === "exited") this.#shared.served.add(process.name);
      if (outcome.kind === "cancelled") throw stop.signal.reason;
      if (outcome.kind === "breach") zk = null;
    } finally {
      script?.giveUp();
      if (!isGuarded) guard.end();
      if (zk !== null) await closeCoordinationSession(zk, clock, stop.signal);
    }
  }

  #startScript(): HeldScript | null {
    if (!this.#shared.settings.isHold) return null;
    const script = new HeldScript(this.#baton, this.chance.fork("script"));
    this.#baton.script = script.own;
    this.#process.whenDead(() => script.giveUp());
    return script;
  }

  /**
   * Several commands at the same time, each under a lock of its own, as in a pool: one guard and one session for all of
   * them.
   */
  async #several(zk: ZooKeeper, guard: CommandGuard, stop: AbortSignal) {
    const beside = new JobTable();
    const end = { hasBreach: false, hasExited: false };
    // After a breach the session is left to expire: nothing waits for a lock in it any more.
    const breach = new AbortController();
    const signal = AbortSignal.any([stop, breach.signal]);
    const runItems = async (index: number) => {
      for (let round = this.chance.whole(1, 3); round > 0 && !stop.aborted && !end.hasBreach; round--) {
        const name = `item${(index + round) % (this.#shared.settings.jobs + 1)}`;
        const lease = await this.#acquire(zk, name, signal).catch((error: unknown) => {
          if (breach.signal.aborted) return null;
          if (!isExpected(error) || zk.session.ended.aborted) throw error;
          return null;
        });
        if (lease === null) continue;
        const outcome = await this.#runUnder({ lease, guard, stop, beside, signals: this.#baton.signals });
        end.hasExited ||= outcome.kind === "exited";
        if (outcome.kind !== "breach") {
          await lease.release();
          continue;
        }
        end.hasBreach = true;
        breach.abort();
      }
    };
    const all = await Promise.allSettled(
      Array.from({ length: this.#shared.settings.jobs }, (_, index) => runItems(index)),
    );
    for (const one of all) {
      if (one.status === "rejected" && !isExpected(one.reason) && one.reason !== stop.reason) throw one.reason;
    }
    return end;
  }

  async #runUnder(held: HeldLock): Promise<ChildOutcome> {
    const { world, name, clock } = this.#process;
    const { lease } = held;
    world.count("grants");
    world.log(() => `${name} got ${lease.path} with token ${lease.fencingToken}`);
    const grantedAtMs = clock.now();
    const truth = this.#begin(lease);
    held.script?.granted(truth);
    const outcome = await this.#supervise({ ...held, truth, grantedAtMs });
    this.#shared.oracle.ended(truth, outcome);
    return outcome;
  }

  #begin(lease: Lease): JobTruth {
    const { settings, isQuiet, oracle } = this.#shared;
    const { chance } = this;
    const isCalm = isQuiet();
    const plan: JobPlan & { habits: Habit[] } = {
      habits: isCalm ? [] : Array.from({ length: chance.whole(0, 3) }, () => chance.oneOf(settings.habits)),
      runMs: isCalm ? chance.between(1, 300) : settings.jobMsMax * chance.next(),
      code: chance.oneOf([0, 0, 1, 7]),
    };
    const terms = {
      killAfterMs: settings.killAfterMs,
      onDoubt: settings.freezes && chance.is(0.6) ? "freeze" as const : "ignore" as const,
      foreground: settings.isForeground && chance.is(0.5),
      leavesRunning: !isCalm && settings.leavesRunning && chance.is(0.3),
      maxHoldMs: !isCalm && chance.is(0.2) ? chance.between(50, settings.jobMsMax) : null,
      stopSignal: chance.oneOf(["SIGTERM", "SIGTERM", "SIGINT"] as const),
    };
    if ((settings.others ?? "none") !== "none" && !isCalm && chance.is(0.3)) plan.habits.push("another user's");
    const truth = oracle.begin({ baton: this.#baton, lease, plan, terms, isScript: settings.isHold });
    if ([...this.#baton.jobs.values()].some(({ outcome }) => outcome === null)) {
      this.#process.world.count("mark command beside another one");
    }
    this.#baton.jobs.set(lease.holderId, truth);
    return truth;
  }

  async #supervise({ lease, guard, stop, truth, grantedAtMs, beside, script, signals }: HeldLock & {
    readonly truth: JobTruth;
    readonly grantedAtMs: number;
  }): Promise<ChildOutcome> {
    const process = this.#process;
    const options: SuperviseOptions = {
      command: ["/bin/sh", "job"],
      clock: process.clock,
      signals,
      descriptors: [],
      env: {},
      ...truth.terms,
      lease,
      guard,
      grantedAtMs,
      signal: stop,
      ...(beside && { beside }),
      onEvent: (event) => {
        process.world.count(`mark supervision: ${event.kind}`);
        this.#shared.oracle.happened(truth, event);
        process.world.log(() => `${process.name}: ${JSON.stringify(event)}`);
      },
    };
    if (script === null || script === undefined) return await superviseChild(options);
    return await superviseScript({ ...options, lease: watched(lease, () => truth.released()) }, {
      script: script.process,
      names: [lease.name],
      ids: [lease.holderId],
      otherHolds: [],
      onHeld: script.continue,
      abandoned: neverAborted,
      openSocket: script.openSocket,
    });
  }

  async #acquire(zk: ZooKeeper, name: string, signal: AbortSignal): Promise<Lease> {
    const { settings, isQuiet } = this.#shared;
    const mode = this.chance.oneOf(settings.modes);
    const options: AcquireLockOptions = {
      clock: this.#process.clock,
      mode,
      signal,
      wait: isQuiet() ? "forever" : this.chance.oneOf(["forever", "forever", "forever", "none", 2000] as const),
      ...(mode === "permit" ? { limit: settings.limit } : {}),
    };
    return await acquireLock(zk, name, options);
  }
}
