/** A simulated machine with its clocks, and a simulated process on it: its life, its timers, its turns. */
import type { Clock } from "../../src/base/support/clock.ts";
import type { ProcessSystem } from "../../src/base/support/own_process.ts";
import type { Chance } from "./chance.ts";
import type { SimEvent, SimWorld } from "./sim_world.ts";
import type { Surroundings } from "./surroundings.ts";

/** The greatest time by which a timer is late on an idle machine, in milliseconds. */
const latenessMs = 0.4;

export interface MachineOptions {
  /** Local milliseconds in a millisecond of true time. */
  readonly clockRate: number;
  /** Wall clock at the start of the world, milliseconds since 1970. */
  readonly wallMs: number;
}

export class SimMachine {
  readonly name: string;
  readonly world: SimWorld;
  readonly clockRate: number;
  readonly processes: SimProcess[] = [];
  isUp = true;
  /** When it was started again after a power cut, in `bootMs`. */
  readonly bootsMs: number[] = [];
  /** True time during which the machine was suspended. */
  suspendedMs = 0;
  /** The end of the last suspend, in true time. */
  wokenAtMs = -Infinity;
  #suspends = 0;
  #whenAwake: (() => void)[] = [];
  /** The processor time of one turn, in milliseconds. */
  turnMs = 0;
  /** How far the wall clock was set, and when. */
  readonly wallSteps: { readonly atMs: number; readonly byMs: number }[] = [];
  #wallOffsetMs: number;

  constructor(world: SimWorld, name: string, options: MachineOptions) {
    this.world = world;
    this.name = name;
    this.clockRate = options.clockRate;
    this.#wallOffsetMs = options.wallMs;
  }

  /** Time since the start, without suspends. */
  monotonicMs(): number {
    return (this.world.nowMs - this.suspendedMs) * this.clockRate;
  }

  /** Time that servers count while this machine is suspended. */
  bootMs(): number {
    return this.world.nowMs * this.clockRate;
  }

  wallMs(): number {
    return Math.floor(this.bootMs() + this.#wallOffsetMs);
  }

  /** When an event is due: timers stand still while the machine is suspended. */
  dueMs(event: SimEvent): number {
    const { atMs, suspendedMs = this.suspendedMs } = event;
    if (event.suspendedMs !== undefined) event.suspendedMs = this.suspendedMs;
    return atMs + this.suspendedMs - suspendedMs;
  }

  get isSuspended(): boolean {
    return this.#suspends > 0;
  }

  beginSuspend(): void {
    this.#suspends++;
  }

  /** Ends a suspend that lasted `tookMs`. */
  endSuspend(tookMs: number): void {
    this.suspendedMs += tookMs;
    if (--this.#suspends > 0) return;
    this.wokenAtMs = this.world.nowMs;
    for (const call of this.#whenAwake.splice(0)) this.world.after(0, call);
  }

  /** Calls back once, at the end of the suspend. */
  whenAwake(call: () => void): void {
    this.#whenAwake.push(call);
  }

  stepWallClock(byMs: number): void {
    this.#wallOffsetMs += byMs;
    this.wallSteps.push({ atMs: this.world.nowMs, byMs });
  }
}

type ProcessState = "running" | "stopped" | "dead";

/** A program of a simulated process: starts its work; its failure is a failure of the run. */
export type SimProgram = (process: SimProcess) => Promise<void>;

export class SimProcess implements Surroundings {
  readonly name: string;
  readonly machine: SimMachine;
  readonly world: SimWorld;
  readonly #program: SimProgram;
  /** Counts the starts. What belongs to an earlier life no longer happens. */
  life = 0;
  state: ProcessState = "dead";
  /** When it was started or continued last, in true time. */
  runsSinceMs = 0;
  /** True time until which the process is busy. */
  busyUntilMs = 0;
  /** The time that system calls of this turn have taken. */
  spentMs = 0;
  /** The processes of the machine as this one sees them; null for a process that reads none. */
  system: ProcessSystem | null = null;
  readonly #chance: Chance;
  readonly #lateness: Chance;
  #ticks: (() => void)[] = [];
  #backlog: SimEvent[] = [];
  /** Suspends that the process has noticed, in milliseconds of its clock. */
  #noticedMs = 0;
  /** Called when this life ends: "killed", or "lost" with the machine. */
  #onDeath = new Set<(how: "killed" | "lost") => void>();
  /** Called as the first thing of a process that continues after it was stopped. */
  onResume: () => void = () => {};

  constructor(machine: SimMachine, name: string, program: SimProgram) {
    this.machine = machine;
    this.world = machine.world;
    this.name = name;
    this.#program = program;
    this.#chance = this.world.chance.fork(`process ${name}`);
    this.#lateness = this.world.chance.fork(`timers ${name}`);
    machine.processes.push(this);
  }

  /** Monotonic time with the suspends that were noticed, as the product's own clock has it. */
  readonly clock: Clock = {
    now: () => this.monotonicMs() + this.#noticedMs,
    noticeSuspend: () => void (this.#noticedMs = this.machine.suspendedMs * this.machine.clockRate),
    startTimer: (delayMs, callback) =>
      this.startTimer(delayMs, () => {
        this.clock.noticeSuspend();
        callback();
      }),
  };

  /** Starts the program; on a machine that is suspended, at the end of the suspend. */
  start(): void {
    if (this.machine.isSuspended) return this.machine.whenAwake(() => this.start());
    if (this.state !== "dead" || !this.machine.isUp) return;
    this.life++;
    this.state = "running";
    this.runsSinceMs = this.world.nowMs;
    this.#noticedMs = this.machine.suspendedMs * this.machine.clockRate;
    const { life } = this;
    this.schedule("start", this.#lateness.between(0, 1), () => {
      this.#program(this).catch((error) => {
        if (this.life === life) this.world.fail("program failed", `${this.name}: ${describe(error)}`);
      });
    });
  }

  /** Ends the life of the process. It is not noticed by the process itself. */
  die(how: "killed" | "lost"): void {
    if (this.state === "dead") return;
    this.state = "dead";
    this.life++;
    this.#ticks = [];
    this.#backlog = [];
    this.onResume = () => {};
    const deaths = [...this.#onDeath];
    this.#onDeath.clear();
    for (const onDeath of deaths) onDeath(how);
  }

  /** The process ends by itself. Its turn goes on, but nothing of it happens later. */
  exit(): void {
    const { life } = this;
    this.world.after(0, () => this.life === life && this.die("killed"));
  }

  /** Calls back when this life ends. */
  whenDead(onDeath: (how: "killed" | "lost") => void): void {
    this.#onDeath.add(onDeath);
  }

  stop(): void {
    if (this.state === "running") this.state = "stopped";
  }

  /** Continues. What became due runs in the order of its times, sockets before timers or after them: both happen. */
  resume(): void {
    if (this.state !== "stopped") return;
    this.state = "running";
    this.runsSinceMs = this.world.nowMs;
    const waiting = this.#backlog;
    this.#backlog = [];
    const first = this.#lateness.is(0.5) ? "timer" : "network";
    const ordered = [
      ...waiting.filter(({ kind }) => (kind === "timer") === (first === "timer")),
      ...waiting.filter(({ kind }) => (kind === "timer") !== (first === "timer")),
    ];
    const { onResume } = this;
    this.schedule("resume", 0, () => onResume());
    for (const event of ordered) this.world.repeat(event, Math.max(this.world.nowMs, this.machine.dueMs(event)));
  }

  /** Keeps an event of a stopped process. */
  keep(event: SimEvent): void {
    this.#backlog.push(event);
  }

  get hasBacklog(): boolean {
    return this.#backlog.length > 0;
  }

  /** Runs `work` as a turn of this process after true time. Does nothing if this life is over by then. */
  schedule(kind: SimEvent["kind"], afterMs: number, work: () => void): SimEvent {
    return this.world.schedule({ process: this, life: this.life, kind, atMs: this.world.nowMs + afterMs, work });
  }

  takeTicks(): (() => void)[] {
    const ticks = this.#ticks;
    this.#ticks = [];
    return ticks;
  }

  monotonicMs(): number {
    return this.machine.monotonicMs() + this.spentMs * this.machine.clockRate;
  }

  wallMs(): number {
    return this.machine.wallMs();
  }

  random(): number {
    return this.#chance.next();
  }

  fillRandom(into: Uint8Array): void {
    this.#chance.bytes(into);
  }

  startTimer(delayMs: number, callback: () => void): () => void {
    const afterMs = this.spentMs + Math.max(0, delayMs) / this.machine.clockRate +
      this.#lateness.between(0, latenessMs);
    let armed = this.#arm(afterMs, callback);
    // Timers stand still while the machine is suspended.
    armed.suspendedMs = this.machine.suspendedMs;
    armed.postpone = (next) => void (armed = next);
    return () => void (armed.isCancelled = true);
  }

  nextTick(callback: () => void): void {
    this.#ticks.push(callback);
  }

  #arm(afterMs: number, callback: () => void): SimEvent {
    return this.schedule("timer", afterMs, callback);
  }
}

export function describe(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
