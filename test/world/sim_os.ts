/**
 * A model of the processes of one machine as Linux has them: numbers that are used again, parents and adopters of
 * orphans, groups and sessions, signals, zombies. Programs are steps at points of time, which may come while another
 * process reads: a system call takes time.
 */
import type { Chance } from "./chance.ts";
import { EventQueue, type QueuedEvent } from "./event_queue.ts";
import type { SimMachine, SimProcess } from "./sim_process.ts";
import { systemError } from "./sim_socket.ts";
import type { SimEvent, SimWorld } from "./sim_world.ts";

export type SignalName = NodeJS.Signals;

export interface OsExit {
  readonly code: number | null;
  readonly signal: SignalName | null;
}

export interface Program {
  readonly exe: string;
  readonly args: readonly string[];
  readonly environ: string;
}

/** The content of a pipe's reading end, and who may write to it. */
export interface PipeWriters {
  /** The process no longer has the writing end open. */
  closedBy(process: OsProcess): void;
}

export class OsProcess {
  readonly os: SimOs;
  readonly pid: number;
  readonly startTicks: number;
  readonly forkedAtMs: number;
  parent: OsProcess | null;
  group: number;
  session: number;
  program: Program;
  /** Has called no execve since it was forked. */
  isCopy = true;
  isSubreaper = false;
  /** When its parent ended first. */
  orphanedAtMs = Infinity;
  /** Another user's: baton's user may not signal it, nor read its environment. */
  isOthers = false;
  isKernelThread = false;
  state: "alive" | "zombie" | "gone" = "alive";
  isStopped = false;
  /** Killed, and not dead yet: it waits in the kernel, or has not run since. */
  isKilled = false;
  /** Uninterruptible until this time. */
  waitsUntilMs = 0;
  exit: OsExit | null = null;
  endedAtMs = Infinity;
  /** The numbers of processes have started again between it and one of those that it descends from. */
  isAfterWrap: boolean;
  /** How long it was a copy before it became a program. */
  startedLateMs = 0;
  readonly ignored = new Set<SignalName>();
  /** Catches a signal; false: the default action. */
  onSignal: (signal: SignalName) => boolean = () => false;
  /** A child has ended. False: the program reaps it later, or never. */
  onChild: (child: OsProcess) => boolean = () => true;
  readonly children: OsProcess[] = [];
  readonly pipes = new Set<PipeWriters>();
  /** The simulated process that this one is, if its program is real code. */
  readonly sim: SimProcess | null;
  /** Whose process it is in truth; inherited by children. */
  owner: object | null;
  pending: SignalName[] = [];
  backlog: (() => void)[] = [];

  constructor(os: SimOs, pid: number, { parent, program, sim = null, owner = null }: {
    readonly parent: OsProcess | null;
    readonly program: Program;
    readonly sim?: SimProcess | null;
    readonly owner?: object | null;
  }) {
    this.os = os;
    this.pid = pid;
    this.parent = parent;
    this.program = program;
    this.sim = sim;
    this.owner = owner;
    this.isAfterWrap = parent !== null && (parent.isAfterWrap || pid < parent.pid);
    this.startTicks = os.ticks();
    this.forkedAtMs = os.nowMs;
    this.group = parent?.group ?? pid;
    this.session = parent?.session ?? pid;
  }

  get isAlive(): boolean {
    return this.state === "alive";
  }

  get isHeldBySystem(): boolean {
    return this.waitsUntilMs > this.os.nowMs;
  }

  /** The letter of proc(5). */
  get letter(): string {
    if (this.state !== "alive") return "Z";
    if (this.isHeldBySystem) return "D";
    return this.isStopped || this.sim?.state === "stopped" ? "T" : "S";
  }
}

interface OsEvent extends QueuedEvent {
  readonly process: OsProcess | null;
  readonly work: () => void;
}

/** The lowest number that is given a second time. */
const pidMin = 300;
const kernelThreadPid = 2;

/** The shortest time in which a machine uses all other numbers, in milliseconds. */
const reusedAfterMs = 1200;

/**
 * A group's number is given again this long after the group's end at the earliest, in milliseconds: nobody can prevent
 * that a group ends between the look at it and the signal.
 */
const signalledWithinMs = 5;

export class SimOs {
  readonly machine: SimMachine;
  readonly world: SimWorld;
  readonly chance: Chance;
  readonly pidMax: number;
  readonly processes = new Map<number, OsProcess>();
  /** From when numbers of processes that have had an owner may be given again; the last one became free latest. */
  readonly reusableMs = new Map<number, number>();
  init: OsProcess;
  /** Told of each signal that a process sends to another one, before it arrives. */
  onKill: (by: OsProcess, to: OsProcess, signal: SignalName) => void = () => {};
  /** Told of the process that takes an orphan. */
  onAdopt: (parent: OsProcess) => void = () => {};
  readonly #queue = new EventQueue<OsEvent>();
  #sequence = 0;
  #nextPid: number;
  /** The numbers that were used within `reusedAfterMs`, by the time of use. */
  #used: { readonly atMs: number; readonly count: number }[] = [];
  #clockMs = 0;
  #wakeMs = Infinity;
  #waking: SimEvent | null = null;
  #wantedPid: number | null = null;

  constructor(machine: SimMachine, { pidMax }: { readonly pidMax: number }) {
    this.machine = machine;
    this.world = machine.world;
    this.chance = this.world.chance.fork(`processes of ${machine.name}`);
    this.pidMax = pidMax;
    this.#nextPid = this.chance.whole(pidMin, pidMax - 1);
    this.init = this.#boot();
  }

  get nowMs(): number {
    return Math.max(this.world.nowMs, this.#clockMs);
  }

  /** Clock ticks from boot, as in /proc/PID/stat. */
  ticks(): number {
    return Math.floor(this.nowMs * this.machine.clockRate / 10) + 100;
  }

  /** The machine lost its power: everything is gone. */
  reset(): void {
    for (const process of this.processes.values()) this.#vanish(process);
    this.processes.clear();
    this.init = this.#boot();
  }

  /** The number that was given last. */
  get lastPid(): number {
    return this.#nextPid - 1;
  }

  /** The next process that is started gets this number: other programs have used those before it. */
  wantPid(pid: number): void {
    this.#wantedPid = pid;
  }

  /** Other programs have used the numbers meanwhile, as far as the machine can start that many. */
  skipPids(count: number): boolean {
    const used = this.#used.reduce((sum, one) => sum + one.count, count);
    if (used >= this.#range) return false;
    this.#nextPid = pidMin + (this.#nextPid - pidMin + count) % this.#range;
    this.#use(count);
    return true;
  }

  #use(count: number): void {
    this.#used = this.#used.filter(({ atMs }) => atMs > this.nowMs - reusedAfterMs);
    this.#used.push({ atMs: this.nowMs, count });
  }

  get #range(): number {
    return this.pidMax - pidMin;
  }

  /** Whether a new process may get this number: no process has it, and it is not too soon. */
  isFree(pid: number): boolean {
    if ((this.reusableMs.get(pid) ?? -Infinity) >= this.nowMs) return false;
    for (const process of this.processes.values()) {
      if (process.pid === pid || process.group === pid || process.session === pid) return false;
    }
    return true;
  }

  /** `sim`: the process runs real code. It has its program from the beginning. */
  start(parent: OsProcess, program: Program, { sim = null, owner = parent.owner }: {
    readonly sim?: SimProcess | null;
    readonly owner?: object | null;
  } = {}): OsProcess {
    const process = new OsProcess(this, this.#newPid(), { parent, program, sim, owner });
    process.isCopy = false;
    return this.#add(process);
  }

  /** fork(2) */
  fork(parent: OsProcess, owner: object | null = parent.owner): OsProcess {
    const { program, ignored } = parent;
    const process = new OsProcess(this, this.#newPid(), { parent, program, owner });
    for (const signal of ignored) process.ignored.add(signal);
    for (const pipe of parent.pipes) process.pipes.add(pipe);
    return this.#add(process);
  }

  /** execve(2): descriptors of pipes are closed. */
  exec(process: OsProcess, program: Program): void {
    if (!process.isAlive) return;
    process.program = program;
    process.isCopy = false;
    process.startedLateMs = this.nowMs - process.forkedAtMs;
    process.onSignal = () => false;
    this.closePipes(process);
  }

  closePipes(process: OsProcess): void {
    const pipes = [...process.pipes];
    process.pipes.clear();
    for (const pipe of pipes) pipe.closedBy(process);
  }

  setSession(process: OsProcess): void {
    process.session = process.group = process.pid;
  }

  /** Calls back when the process runs at that time or later: a stopped one does not run. */
  after(process: OsProcess | null, delayMs: number, work: () => void): void {
    this.#queue.push({ atMs: this.nowMs + Math.max(0, delayMs), sequence: this.#sequence++, process, work });
    this.#wake();
  }

  /** A system call of a real process takes this long. Others go on meanwhile. */
  spend(by: OsProcess, ms: number): void {
    const { sim } = by;
    if (sim === null) return;
    sim.spentMs += ms;
    this.#clockMs = Math.max(this.#clockMs, this.world.nowMs + sim.spentMs);
    this.#runDue();
  }

  end(process: OsProcess, exit: OsExit): void {
    if (!process.isAlive) return;
    process.state = "zombie";
    process.exit = exit;
    process.endedAtMs = this.nowMs;
    process.backlog = [];
    this.world.trace.number(process.pid);
    this.world.log(() =>
      `${this.machine.name}: ${process.pid} ${process.program.args[0]} ends: ${exit.code ?? exit.signal}`
    );
    this.closePipes(process);
    for (const child of [...process.children]) this.#adopt(child, process);
    const { parent } = process;
    if (parent === null) return this.#remove(process);
    if (parent === this.init) return this.reap(process);
    if (parent.onChild(process)) this.reap(process);
  }

  /** waitpid(2) of the parent. */
  reap(process: OsProcess): void {
    if (process.state === "zombie") this.#remove(process);
  }

  /** kill(2). Throws ESRCH. */
  kill(by: OsProcess, pid: number, signal: SignalName | 0): void {
    const targets = pid < 0
      ? [...this.processes.values()].filter(({ group }) => group === -pid)
      : [this.processes.get(pid)].filter((one) => one !== undefined);
    if (targets.length === 0) throw systemError("ESRCH", `no such process: ${pid}`);
    const permitted = targets.filter(({ isOthers }) => !isOthers);
    if (permitted.length === 0) throw systemError("EPERM", `not permitted: ${pid}`);
    if (signal === 0) return;
    for (const target of permitted) {
      this.onKill(by, target, signal);
      this.deliver(target, signal);
    }
  }

  deliver(process: OsProcess, signal: SignalName): void {
    if (!process.isAlive || process === this.init || process.isKernelThread) return;
    this.world.trace.text(`${signal} ${process.pid}`);
    this.world.log(() => `${this.machine.name}: ${signal} for ${process.pid} ${process.program.args[0]}`);
    switch (signal) {
      case "SIGKILL":
        return this.#kill(process, signal);
      case "SIGSTOP":
        process.pending = process.pending.filter((one) => one !== "SIGCONT");
        process.isStopped = true;
        return process.sim?.stop();
      case "SIGCONT":
        return this.#continue(process);
      default:
        if (process.ignored.has(signal)) return;
        if (process.isStopped || process.isHeldBySystem) return void process.pending.push(signal);
        return this.#handle(process, signal);
    }
  }

  /** Waits in the kernel: nothing ends it meanwhile. */
  holdInSystem(process: OsProcess, forMs: number): void {
    process.waitsUntilMs = this.nowMs + forMs;
    this.after(null, forMs, () => process.isAlive && !process.isStopped && this.#handlePending(process));
  }

  #handle(process: OsProcess, signal: SignalName): void {
    if (process.onSignal(signal) || ["SIGCHLD", "SIGWINCH", "SIGCONT"].includes(signal)) return;
    this.#kill(process, signal);
  }

  /** The process ends when it runs next, or when it leaves the kernel. */
  #kill(process: OsProcess, signal: SignalName): void {
    if (process.isKilled) return;
    process.isKilled = true;
    const die = () => {
      if (!process.isAlive) return;
      const leftMs = process.waitsUntilMs - this.nowMs;
      if (leftMs > 0) return this.after(null, leftMs + 0.01, die);
      if (process.sim === null) this.end(process, { code: null, signal });
      else process.sim.die("killed");
    };
    this.after(null, this.chance.between(0.01, this.chance.is(0.05) ? 5 : 0.3), die);
  }

  #continue(process: OsProcess): void {
    process.sim?.resume();
    if (!process.isStopped) return;
    process.isStopped = false;
    const backlog = process.backlog;
    process.backlog = [];
    for (const work of backlog) this.after(process, 0, work);
    if (!process.isHeldBySystem) this.#handlePending(process);
  }

  #handlePending(process: OsProcess): void {
    for (const signal of process.pending.splice(0)) if (process.isAlive) this.#handle(process, signal);
  }

  #adopt(child: OsProcess, dead: OsProcess): void {
    let next = dead.parent;
    while (next !== null && !(next.isAlive && (next.isSubreaper || next === this.init))) next = next.parent;
    const parent = next ?? this.init;
    dead.children.splice(dead.children.indexOf(child), 1);
    child.parent = parent;
    child.orphanedAtMs = Math.min(child.orphanedAtMs, this.nowMs);
    parent.children.push(child);
    this.onAdopt(parent);
    if (child.state === "zombie" && parent === this.init) this.reap(child);
  }

  #boot(): OsProcess {
    const init = new OsProcess(this, 1, {
      parent: null,
      program: { exe: "/sbin/init", args: ["init"], environ: "HOME=/\0" },
    });
    init.isCopy = false;
    this.processes.set(1, init);
    const kernel = new OsProcess(this, kernelThreadPid, { parent: null, program: { exe: "", args: [], environ: "" } });
    kernel.group = kernel.session = 0;
    kernel.isKernelThread = true;
    this.processes.set(kernelThreadPid, kernel);
    return init;
  }

  #add(process: OsProcess): OsProcess {
    this.processes.set(process.pid, process);
    process.parent?.children.push(process);
    return process;
  }

  #remove(process: OsProcess): void {
    process.state = "gone";
    this.processes.delete(process.pid);
    this.#release(process.pid, process.owner === null ? -Infinity : this.nowMs + reusedAfterMs);
    if (process.group !== process.pid) this.#release(process.group, this.reusableMs.get(process.group) ?? -Infinity);
    const siblings = process.parent?.children;
    siblings?.splice(siblings.indexOf(process), 1);
  }

  /** A process no longer has this number, as its own or as that of its group. */
  #release(pid: number, reusableMs: number): void {
    this.reusableMs.delete(pid);
    if (reusableMs > -Infinity) this.reusableMs.set(pid, Math.max(reusableMs, this.nowMs + signalledWithinMs));
  }

  #vanish(process: OsProcess): void {
    process.state = "gone";
    process.backlog = [];
  }

  #newPid(): number {
    const wanted = this.#wantedPid;
    this.#wantedPid = null;
    const range = this.#range;
    if (wanted !== null && this.isFree(wanted) && this.skipPids((wanted - this.#nextPid + range) % range + 1)) {
      return wanted;
    }
    let count = 0;
    do {
      if (this.#nextPid >= this.pidMax) this.#nextPid = pidMin;
      count++;
    } while (!this.isFree(this.#nextPid++));
    this.#use(count);
    return this.lastPid;
  }

  /** Runs the programs again after the machine was suspended. */
  #wake(): void {
    const atMs = this.#queue.peek()?.atMs ?? Infinity;
    if (atMs >= this.#wakeMs) return;
    if (this.#waking !== null) this.#waking.isCancelled = true;
    this.#wakeMs = atMs;
    this.#waking = this.world.after(Math.max(0, atMs - this.world.nowMs), () => {
      this.#wakeMs = Infinity;
      this.#waking = null;
      if (this.machine.isSuspended) this.machine.whenAwake(() => this.#runAndWake());
      else this.#runAndWake();
    });
  }

  #runAndWake(): void {
    this.#runDue();
    this.#wake();
  }

  #runDue(): void {
    for (;;) {
      const event = this.#queue.peek();
      if (event === undefined || event.atMs > this.nowMs) return;
      this.#queue.pop();
      const { process, work } = event;
      if (process === null) work();
      else if (!process.isAlive || process.isKilled) continue;
      else if (process.isStopped) process.backlog.push(work);
      else if (process.isHeldBySystem) this.after(process, process.waitsUntilMs - this.nowMs + 0.01, work);
      else work();
    }
  }
}
