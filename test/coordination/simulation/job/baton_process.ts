/**
 * A baton among the processes of its machine: its signals, the start of its command, and its guard, which runs the real
 * code of guards.
 */
import { type GuardKeptSession, GuardLoop } from "../../../../src/base/process/guard/guard_main.ts";
import { loadLibc, provideSimulatedLibc } from "../../../../src/base/process/libc.ts";
import { type ChildExitStatus, toChildExitStatus } from "../../../../src/base/process/spawn/child_outcome.ts";
import type { HelperProcess } from "../../../../src/base/process/spawn/helper_process.ts";
import {
  type CommandLaunchOptions,
  provideSimulatedSpawn,
  type ResolvedCommandStart,
  type StartedProcess,
} from "../../../../src/base/process/spawn/spawn_child.ts";
import type { SignalSource } from "../../../../src/base/process/supervise/signal_source.ts";
import { jobCookieVariable } from "../../../../src/base/process/proc/process_table.ts";
import { registerChildProcess } from "../../../../src/base/support/own_process.ts";
import { keepDeadBatonSession } from "../../../../src/coordination/job/kept_session.ts";
import { endSessionOfDeadProcess } from "../../../../src/protocols/zookeeper/end_session.ts";
import { Chance } from "../../../world/chance.ts";
import type { OsProcess, SignalName, SimOs } from "../../../world/sim_os.ts";
import { simLibc, SimPipe, SimSystem } from "../../../world/sim_proc.ts";
import { type SimMachine, SimProcess } from "../../../world/sim_process.ts";
import type { SimNetwork } from "../../../world/sim_network.ts";
import { setCurrent } from "../../../world/surroundings.ts";
import { JobProgram, programOf } from "./job_programs.ts";
import type { JobTruth } from "./job_oracle.ts";

/** What processes of this world need of it. */
export interface JobPlaces {
  readonly network: SimNetwork;
  osOf(machine: SimMachine): SimOs;
  /** A baton begins. */
  readonly begins: (baton: BatonProcess) => void;
  /** Called when a command is being started, with the time until it has become the command. */
  readonly atStart: (baton: BatonProcess, execMs: number) => void;
  /** How long a process takes to become another program. */
  readonly execMs: (chance: Chance) => number;
}

const batonProgram = { exe: "/usr/bin/baton", args: ["baton"], environ: "PATH=/bin\0" };
const guardProgram = { exe: "/usr/bin/baton", args: ["lock-guard", "__guard"], environ: "PATH=/bin\0" };

class SimSignals implements SignalSource {
  readonly hangUpIgnored = false;
  readonly #listeners = new Map<SignalName, Set<(signal: SignalName) => void>>();

  listen(signals: readonly SignalName[], listener: (signal: SignalName) => void): () => void {
    for (const signal of signals) {
      const known = this.#listeners.get(signal) ?? new Set();
      known.add(listener);
      this.#listeners.set(signal, known);
    }
    return () => {
      for (const signal of signals) this.#listeners.get(signal)?.delete(listener);
    };
  }

  isCaught(signal: SignalName): boolean {
    return (this.#listeners.get(signal)?.size ?? 0) > 0;
  }

  call(signal: SignalName): void {
    for (const listener of [...this.#listeners.get(signal) ?? []]) listener(signal);
  }
}

/** A guard as a simulated process. */
export interface GuardProcess {
  readonly sim: SimProcess;
  readonly own: OsProcess;
  readonly life: number;
  /** It has begun to read its pipe. */
  readyMs: number;
  /** It has begun to end baton's session. */
  endsSession: boolean;
  /** It has begun to keep baton's session alive. */
  keepsSession: boolean;
  /** It ended by itself, after its work. */
  hasFinished: boolean;
}

export class BatonProcess {
  readonly process: SimProcess;
  readonly life: number;
  readonly own: OsProcess;
  readonly os: SimOs;
  readonly signals = new SimSignals();
  readonly guards: GuardProcess[] = [];
  readonly #places: JobPlaces;
  readonly #chance: Chance;
  /** It waits until its child is another program, and does nothing else. */
  blockedUntilMs = 0;
  /** Somebody has signalled baton, which may have passed it on. */
  hasCaughtSignal = false;
  /** The script that has called `baton hold`. */
  script: OsProcess | null = null;
  /** The jobs by their cookies. */
  readonly jobs = new Map<string, JobTruth>();
  /** Children that the runtime reaps: commands and guards. Adopted orphans stay until baton reaps them. */
  readonly #ended = new Map<number, (child: OsProcess) => void>();
  #helpersEnd: Promise<void> = Promise.resolve();

  constructor(process: SimProcess, places: JobPlaces) {
    this.process = process;
    this.life = process.life;
    this.#places = places;
    this.#chance = process.world.chance.fork(`baton ${process.name} ${process.life}`);
    this.os = places.osOf(process.machine);
    const { os } = this;
    this.own = os.start(os.init, batonProgram, { sim: process, owner: this });
    os.setSession(this.own);
    const system = new SimSystem(this.own);
    process.system = system;
    setCurrent(process); // its turn goes on with these processes
    provideSimulatedLibc(system, simLibc(system));
    provideSimulatedSpawn(system, (start, terms) => this.#spawn(start, terms));
    this.own.onSignal = (signal) => {
      if (!this.signals.isCaught(signal)) return false;
      this.hasCaughtSignal = true;
      process.schedule("network", 0.05, () => this.signals.call(signal));
      return true;
    };
    this.own.onChild = (child) => this.#childEnded(child);
    process.whenDead((how) => this.#died(how));
    places.begins(this);
  }

  get isAlive(): boolean {
    return this.process.life === this.life;
  }

  /** Resolves when the guards that were told to end have ended, or take too long. */
  async helpersEnd(): Promise<void> {
    const limit = Promise.withResolvers<void>();
    const cancel = this.process.startTimer(1000, limit.resolve);
    await Promise.race([this.#helpersEnd, limit.promise]);
    cancel();
  }

  #died(how: "killed" | "lost"): void {
    const { os, own } = this;
    this.process.system = null;
    if (how === "lost") return os.reset();
    os.closePipes(own);
    // Its last thread may die later than its descriptors are closed.
    os.after(
      null,
      this.#chance.is(0.1) ? this.#chance.between(0, 300) : this.#chance.between(0, 1),
      () => os.end(own, { code: 0, signal: null }),
    );
  }

  #childEnded(child: OsProcess): boolean {
    const onEnded = this.#ended.get(child.pid);
    if (onEnded === undefined || !this.isAlive) return false;
    const lateMs = this.os.nowMs - this.os.world.nowMs + this.#chance.between(0.05, 1);
    this.process.schedule("network", lateMs, () => {
      this.#ended.delete(child.pid);
      this.os.reap(child);
      onEnded(child);
    });
    return false;
  }

  async #spawn({ env }: ResolvedCommandStart, { ownGroup, onStarted }: CommandLaunchOptions): Promise<StartedProcess> {
    const { os, own, process } = this;
    const job = this.jobs.get(env[jobCookieVariable]?.split(":").at(-1) ?? "");
    if (job === undefined) throw new Error("the command of no job is to be started");
    if (!this.guards.some(({ readyMs }) => readyMs < Infinity)) {
      process.world.fail("started without a guard", `${process.name} under ${job.lease.path}`);
    }
    const child = os.fork(own, job);
    // In the same turn as the start: baton does nothing else before it knows its child.
    const unregister = registerChildProcess(child.pid, "command");
    onStarted?.(child.pid);
    const ended = Promise.withResolvers<ChildExitStatus>();
    this.#ended.set(child.pid, ({ exit }) => {
      unregister();
      ended.resolve(toChildExitStatus(exit?.code ?? null, exit?.signal ?? null));
    });
    job.started(child);
    if (ownGroup) os.setSession(child);
    for (const pipe of child.pipes) (pipe as SimPipe).inherit(child);
    // Some runtimes close descriptors before the start of the program, some with it.
    if (this.#chance.is(0.5)) os.closePipes(child);
    const execMs = this.#places.execMs(this.#chance);
    const started = Promise.withResolvers<void>();
    let isExec = false;
    os.after(child, execMs, () => {
      isExec = true;
      os.exec(child, programOf("job", job.lease.holderId));
      new JobProgram(os, job.plan, { chance: this.#chance.fork(`job ${child.pid}`), cookie: job.lease.holderId }).begin(
        child,
      );
    });
    // As vfork(2): baton waits until the child is another program, or dead.
    const wait = () => {
      if (isExec || !child.isAlive) started.resolve();
      else process.schedule("disk", 0.5, wait);
    };
    process.busyUntilMs = Math.max(process.busyUntilMs, process.world.nowMs + execMs);
    this.blockedUntilMs = process.busyUntilMs;
    process.schedule("disk", execMs + 0.01, wait);
    this.#places.atStart(this, execMs);
    await started.promise;
    job.reportedAtMs = os.nowMs; // in this turn
    return { pid: child.pid, ended: ended.promise, output: null };
  }

  /** Starts a guard, which has its pipe as its input. */
  startGuard(onLine: (line: string) => void): HelperProcess {
    const { os, process } = this;
    const { world, machine } = process;
    const input = new SimPipe();
    input.openFor(this.own);
    let text = "";
    const output = (bytes: Uint8Array) => {
      if (!this.isAlive) return;
      process.schedule("network", 0.05 + this.#chance.next() * 0.2, () => {
        const lines = (text + new TextDecoder().decode(bytes)).split("\n");
        text = lines.pop() ?? "";
        lines.forEach(onLine);
      });
    };
    const sim = new SimProcess(machine, `${process.name} guard`, () => {
      // It loads its code first.
      const lateMs = this.#chance.is(0.05) ? this.#chance.between(100, 3000) : this.#chance.between(3, 40);
      sim.startTimer(lateMs, () => void runGuard(guard, input, { network: this.#places.network }));
      return Promise.resolve();
    });
    const own = os.start(this.own, guardProgram, { sim, owner: this });
    os.setSession(own);
    const system = new SimSystem(own);
    sim.system = system;
    provideSimulatedLibc(system, simLibc(system, { input, output }));
    sim.start();
    const guard: GuardProcess = {
      sim,
      own,
      life: sim.life,
      readyMs: Infinity,
      endsSession: false,
      keepsSession: false,
      hasFinished: false,
    };
    this.guards.push(guard);
    world.count("guards");
    sim.whenDead((how) => {
      input.onReadable = () => {};
      world.after(0, () => machine.processes.splice(machine.processes.indexOf(sim), 1));
      if (how === "killed") {
        os.end(own, guard.hasFinished ? { code: 0, signal: null } : { code: null, signal: "SIGKILL" });
      }
    });
    const unregister = registerChildProcess(own.pid, "helper");
    const ended = new Promise<void>((resolve) => {
      this.#ended.set(own.pid, () => {
        unregister();
        resolve();
      });
    });
    this.#helpersEnd = ended;
    return {
      pid: own.pid,
      send: (line) => input.write(this.own, new TextEncoder().encode(line)),
      kill: () => os.kill(this.own, own.pid, "SIGKILL"),
      ended,
    };
  }
}

/** Milliseconds after which a guard gives up to end a session. */
const endSessionMsMax = 5000;

async function runGuard(
  guard: GuardProcess,
  input: SimPipe,
  { network }: { readonly network: SimNetwork },
): Promise<void> {
  const { sim } = guard;
  const { world, clock } = sim;
  const libc = await loadLibc();
  if (libc === null) throw new Error("a guard has no libc");
  for (const signal of [1, 2, 3, 15]) libc.ignoreSignal(signal);
  const loop = new GuardLoop(libc);
  guard.readyMs = world.nowMs;
  let cancel = () => {};
  let kept: GuardKeptSession | null = null;
  const finish = () => {
    guard.hasFinished = true;
    sim.exit();
  };
  const turn = (): void => {
    cancel();
    input.onReadable = () => {};
    const next = loop.step(kept?.isLost);
    if (next.kind === "end") {
      const { session } = next;
      if (session === null) return finish();
      world.count("mark guard ends the session");
      guard.endsSession = true;
      world.log(() => `${sim.name} ends the session`);
      const end = () =>
        endSessionOfDeadProcess(session.handle, { clock, limitMs: endSessionMsMax, dial: network.dial(sim) });
      void (kept?.end() ?? end()).then(finish);
      return;
    }
    if (next.kind === "keep") {
      if (kept === null) world.count("mark guard keeps the session");
      guard.keepsSession = true;
      kept ??= keepDeadBatonSession(next.session.handle, { clock, dial: network.dial(sim) });
      kept.show(next.jobs);
      cancel = sim.startTimer(next.forMs, turn);
      return;
    }
    if (next.kind === "wait" && kept !== null) {
      kept.leave();
      kept = null;
    }
    // As poll(2): the first of both wakes it.
    let isOver = false;
    const wake = () => {
      if (isOver) return;
      isOver = true;
      turn();
    };
    const isWaiting = next.kind === "wait";
    cancel = sim.startTimer(next.forMs, wake);
    if (!isWaiting) return;
    const woken = () => void sim.schedule("network", 0.02, wake);
    input.onReadable = woken;
    if (input.isReadable) woken();
  };
  turn();
}
