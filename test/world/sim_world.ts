/**
 * A simulated world: one queue of events, each of which is one turn of the event loop of one process. After each turn
 * all microtasks run before the next one. Everything that can vary comes from the seed.
 */
import process from "node:process";
import { processorTimeMs } from "../support/processor_time.ts";
import { Chance } from "./chance.ts";
import { EventQueue } from "./event_queue.ts";
import { describe, type MachineOptions, SimMachine, type SimProcess } from "./sim_process.ts";
import { real, replaceGlobals, setCurrent } from "./surroundings.ts";
import { TraceHash } from "./trace_hash.ts";

export type SimEventKind = "start" | "resume" | "timer" | "network" | "disk" | "world";

export interface SimEvent {
  readonly atMs: number;
  readonly sequence: number;
  /** Null for the network, the disks and the faults themselves. */
  readonly process: SimProcess | null;
  readonly life: number;
  readonly kind: SimEventKind;
  readonly work: () => void;
  isCancelled: boolean;
  /** For timers: what the machine had been suspended when it was armed. */
  suspendedMs?: number;
  postpone?: (next: SimEvent) => void;
}

/** A run that must not end like this. `kind` is the same whenever the same promise is broken. */
export interface SimFailure {
  readonly kind: string;
  readonly message: string;
  readonly atMs: number;
}

/** Turns without time passing that are taken for a loop without end. */
const turnsAtOneTimeMax = 20_000;
/** Processor time of one run, in milliseconds. */
const processorMsMax = 60_000;

export interface WorldOptions {
  readonly seed: number;
  /** Receives a line for each thing that happens. */
  readonly log?: ((line: string) => void) | undefined;
}

export class SimWorld {
  nowMs = 0;
  readonly chance: Chance;
  readonly trace = new TraceHash();
  readonly machines = new Map<string, SimMachine>();
  /** How often each thing has happened: faults that took effect, and situations that a run must reach. */
  readonly counts = new Map<string, number>();
  failure: SimFailure | null = null;
  turns = 0;
  readonly #queue = new EventQueue<SimEvent>();
  readonly #log: ((line: string) => void) | undefined;
  #sequence = 0;
  #current: SimProcess | null = null;
  #turnsNow = 0;
  #visits: { readonly process: SimProcess; readonly life: number; readonly look: () => void }[] = [];

  constructor({ seed, log }: WorldOptions) {
    this.chance = new Chance(seed);
    this.#log = log;
  }

  /** What a run of this world has come to. */
  get outcome() {
    const { failure, turns, nowMs, counts } = this;
    return { trace: this.trace.value, failure, turns, simulatedMs: nowMs, counts };
  }

  get isVerbose(): boolean {
    return this.#log !== undefined;
  }

  machine(name: string, options: MachineOptions): SimMachine {
    const machine = new SimMachine(this, name, options);
    this.machines.set(name, machine);
    return machine;
  }

  count(what: string, times = 1): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + times);
  }

  log(line: () => string): void {
    this.#log?.(`${this.nowMs.toFixed(3).padStart(12)}  ${line()}`);
  }

  /** The first failure ends the run. */
  fail(kind: string, message: string): void {
    if (this.failure !== null) return;
    this.failure = { kind, message, atMs: this.nowMs };
    this.log(() => `FAILURE ${kind}: ${message}`);
  }

  schedule({ atMs, process, life, kind, work }: Omit<SimEvent, "sequence" | "isCancelled">): SimEvent {
    const made: SimEvent = { atMs, sequence: this.#sequence++, process, life, kind, work, isCancelled: false };
    this.#queue.push(made);
    return made;
  }

  /** Does something that is no turn of a process, such as a delivery by the network. */
  after(delayMs: number, work: () => void): SimEvent {
    return this.schedule({ process: null, life: 0, kind: "world", atMs: this.nowMs + delayMs, work });
  }

  /** Queues an event again, behind those of the same time. */
  repeat(event: SimEvent, atMs: number): void {
    const { process: owner, life, kind, work, postpone, suspendedMs } = event;
    const next = this.schedule({ atMs, process: owner, life, kind, work });
    next.isCancelled = event.isCancelled;
    if (suspendedMs !== undefined) next.suspendedMs = suspendedMs;
    if (postpone === undefined) return;
    next.postpone = postpone;
    postpone(next);
  }

  /**
   * Looks at a process in a turn of its own, before anything else happens: what it finds may make the process do
   * something.
   */
  visit(one: SimProcess, look: () => void): void {
    this.#visits.push({ process: one, life: one.life, look });
  }

  /** Runs until a failure, until nothing is left to do, or until this time. Only one world can run at a time. */
  async run(untilMs: number): Promise<void> {
    const onRejection = (error: unknown) => this.fail("unhandled rejection", describe(error));
    process.on("unhandledRejection", onRejection);
    const restore = replaceGlobals((message) => this.fail("leak", message));
    try {
      await new Promise<void>((resolve) => {
        const endMs = processorTimeMs() + processorMsMax;
        const step = (): void => {
          while (this.#step(untilMs)) {
            if ((this.turns & 4095) === 0 && processorTimeMs() > endMs) {
              this.fail("too slow", `${processorMsMax} ms of processor time`);
            }
            // An event of the world itself runs no code of a process: it leaves no microtasks.
            if (this.#current !== null) return void real.setImmediate(step);
          }
          setCurrent(null);
          resolve();
        };
        real.setImmediate(step);
      });
    } finally {
      setCurrent(null);
      restore();
      process.off("unhandledRejection", onRejection);
    }
  }

  /** One turn. False when the run is over. */
  #step(untilMs: number): boolean {
    const ticks = this.#current?.takeTicks() ?? [];
    if (ticks.length > 0) {
      this.#attempt(() => {
        for (const tick of ticks) tick();
      });
      return true;
    }
    const visit = this.#visits.shift();
    if (visit !== undefined) {
      if (visit.process.life !== visit.life) return true;
      this.#enter(visit.process);
      this.#attempt(visit.look);
      return true;
    }
    this.#enter(null);
    for (;;) {
      const event = this.#queue.peek();
      if (this.failure !== null || event === undefined || event.atMs > untilMs) return false;
      this.#queue.pop();
      if (event.isCancelled || !this.#isDue(event)) continue;
      this.#advance(event);
      return true;
    }
  }

  /** False for an event of a former life, and for one that has to wait. */
  #isDue(event: SimEvent): boolean {
    const { process: owner, suspendedMs } = event;
    if (owner === null) return true;
    if (owner.life !== event.life) return false;
    if (owner.state === "stopped") {
      owner.keep(event);
      return false;
    }
    if (suspendedMs !== undefined && suspendedMs < owner.machine.suspendedMs) {
      this.repeat(event, Math.max(this.nowMs, owner.machine.dueMs(event)));
      return false;
    }
    if (owner.busyUntilMs <= event.atMs) return true;
    this.repeat(event, owner.busyUntilMs);
    return false;
  }

  #advance(event: SimEvent): void {
    this.turns++;
    this.#turnsNow = event.atMs > this.nowMs ? 0 : this.#turnsNow + 1;
    if (this.#turnsNow > turnsAtOneTimeMax) this.fail("busy loop", `${turnsAtOneTimeMax} turns, and no time passes`);
    this.nowMs = Math.max(this.nowMs, event.atMs);
    const owner = event.process;
    this.trace.number(this.nowMs);
    this.trace.text(event.kind);
    if (owner !== null) {
      this.trace.text(owner.name);
      owner.busyUntilMs = this.nowMs + owner.machine.turnMs;
    }
    this.#enter(owner);
    this.#attempt(event.work);
  }

  #attempt(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.fail("uncaught error", `${this.#current?.name ?? "the world"}: ${describe(error)}`);
    }
  }

  #enter(next: SimProcess | null): void {
    const before = this.#current;
    if (before !== null && before.spentMs > 0) {
      before.busyUntilMs = Math.max(before.busyUntilMs, this.nowMs + before.spentMs);
      before.spentMs = 0;
    }
    this.#current = next;
    setCurrent(next);
  }
}
