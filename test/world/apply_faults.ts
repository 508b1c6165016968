/** Applies the faults of a run to its world, each with its own end. Counts those that had something to act on. */
import type { Fault } from "./fault_plan.ts";
import type { Chance } from "./chance.ts";
import type { SimNetwork } from "./sim_network.ts";
import type { SimMachine, SimProcess } from "./sim_process.ts";
import type { SimWorld } from "./sim_world.ts";

/** Faults of a disk that are in force. */
export interface DiskFaults {
  slow: number;
  full: number;
  failing: number;
}

interface FaultyDisk {
  readonly faults: DiskFaults;
  /** Flips a bit of what is stored, and returns the function that flips it back. */
  readonly flipBit?: (chance: Chance) => () => void;
}

export interface FaultTargets {
  readonly world: SimWorld;
  readonly network: SimNetwork;
  /** The disk that a process writes to. */
  readonly diskOf: (process: SimProcess) => FaultyDisk | undefined;
  /** The process that a fault names, at the time of the fault; none if there is no such process then. */
  readonly target: (name: string) => SimProcess | undefined;
}

/** A fault that begins after `afterMs`, and is over within `leftMs`: none if it would not begin before that. */
export function faultInTime(
  fault: Fault,
  { target, afterMs, leftMs }: { readonly target: string; readonly afterMs: number; readonly leftMs: number },
): Fault[] {
  if (afterMs >= leftMs) return [];
  return [{
    ...fault,
    target,
    at: afterMs,
    ...("forMs" in fault ? { forMs: Math.min(fault.forMs, leftMs - afterMs) } : {}),
  }];
}

export function applyFaults(faults: readonly Fault[], targets: FaultTargets): void {
  for (const fault of faults) {
    targets.world.after(fault.at, () => {
      const process = targets.target(fault.target);
      if (process === undefined) return;
      targets.world.log(() => `FAULT ${JSON.stringify(fault)}`);
      new FaultInForce(targets, process).begin(fault);
    });
  }
}

class FaultInForce {
  readonly #targets: FaultTargets;
  readonly #world: SimWorld;
  readonly #process: SimProcess;
  readonly #machine: SimMachine;

  constructor(targets: FaultTargets, process: SimProcess) {
    this.#targets = targets;
    this.#world = targets.world;
    this.#process = process;
    this.#machine = process.machine;
  }

  begin(fault: Fault): void {
    const { network, diskOf } = this.#targets;
    const { faults } = diskOf(this.#process) ?? { faults: { slow: 0, full: 0, failing: 0 } };
    switch (fault.kind) {
      case "reset":
      case "half open":
        return this.#breakConnections(fault.kind);
      case "cut": {
        const others = this.#othersOf(fault.peer);
        const to = fault.direction === "from" ? [] : others.map((other) => [other, this.#machine] as const);
        const from = fault.direction === "to" ? [] : others.map((other) => [this.#machine, other] as const);
        for (const [one, other] of [...to, ...from]) network.cut(one, other);
        return this.#later(fault.forMs, () => {
          for (const [one, other] of [...to, ...from]) network.heal(one, other);
        });
      }
      case "delay":
        return this.#delay(fault.addMs, fault.forMs);
      case "kill":
        if (this.#process.state === "dead") return;
        this.#took(fault.kind);
        this.#process.die("killed");
        return this.#later(fault.forMs, () => this.#process.start());
      case "lose":
        return this.#lose(fault.forMs);
      case "stop":
        return this.#stop(fault.forMs, "stop", [this.#process]);
      case "suspend":
        return this.#stop(fault.forMs, "suspend", this.#machine.processes);
      case "wall step":
        this.#took(fault.kind);
        return this.#machine.stepWallClock(fault.byMs);
      case "busy":
        this.#took(fault.kind);
        this.#machine.turnMs += fault.turnMs;
        return this.#later(
          fault.forMs,
          () => void (this.#machine.turnMs = Math.max(0, this.#machine.turnMs - fault.turnMs)),
        );
      case "disk slow":
        faults.slow += fault.flushMs;
        return this.#later(fault.forMs, () => void (faults.slow = Math.max(0, faults.slow - fault.flushMs)));
      case "disk full":
        faults.full++;
        return this.#later(fault.forMs, () => void faults.full--);
      case "flipped bit": {
        const flipBit = diskOf(this.#process)?.flipBit;
        if (flipBit === undefined || this.#process.state === "dead") return;
        this.#process.die("killed");
        const flipBack = flipBit(this.#world.chance.fork(`bit at ${fault.at}`));
        this.#later(1, () => this.#process.start());
        return this.#later(fault.forMs, flipBack);
      }
      case "disk failing":
        faults.failing++;
        return this.#later(fault.forMs, () => void faults.failing--);
    }
  }

  #othersOf(peer: string | undefined): SimMachine[] {
    if (peer === undefined) return [...this.#world.machines.values()].filter((machine) => machine !== this.#machine);
    const machine = this.#targets.target(peer)?.machine;
    if (machine === undefined || machine === this.#machine) return [];
    this.#world.count("mark two roles cut off from each other");
    return [machine];
  }

  #took(kind: Fault["kind"]): void {
    this.#world.count(`effect ${kind}`);
  }

  #later(afterMs: number, end: () => void): void {
    this.#world.after(afterMs, end);
  }

  #breakConnections(kind: "reset" | "half open"): void {
    for (const socket of [...this.#targets.network.sockets]) {
      if (socket.machine !== this.#machine) continue;
      this.#took(kind);
      if (kind === "reset") socket.peerSocket?.break();
      socket.break();
    }
  }

  #delay(addMs: number, forMs: number): void {
    const { network } = this.#targets;
    const routes = [...this.#world.machines.values()].filter((machine) => machine !== this.#machine)
      .flatMap((other) => [network.route(other, this.#machine), network.route(this.#machine, other)]);
    for (const route of routes) route.addedMs += addMs;
    this.#later(forMs, () => {
      for (const route of routes) route.addedMs = Math.max(0, route.addedMs - addMs);
    });
  }

  /** The machine is gone without a word, and starts again. */
  #lose(forMs: number): void {
    if (!this.#machine.isUp) return;
    this.#took("lose");
    this.#machine.isUp = false;
    for (const one of this.#machine.processes) one.die("lost");
    this.#later(forMs, () => {
      this.#machine.isUp = true;
      this.#machine.bootsMs.push(this.#machine.bootMs());
      for (const one of this.#machine.processes) one.start();
    });
  }

  /** Stops the processes that run. */
  #stop(forMs: number, kind: "stop" | "suspend", processes: readonly SimProcess[]): void {
    if (this.#process.state !== "running") return;
    const { life } = this.#process;
    const stopped = processes.filter(({ state }) => state === "running").map((one) => ({ one, life: one.life }));
    for (const { one } of stopped) one.stop();
    if (kind === "suspend") this.#machine.beginSuspend();
    this.#later(forMs, () => {
      if (this.#process.life === life && this.#process.hasBacklog) this.#took(kind);
      if (kind === "suspend") this.#machine.endSuspend(forMs);
      const resume = () => {
        for (const { one, life } of stopped) if (one.life === life) one.resume();
      };
      if (this.#machine.isSuspended) this.#machine.whenAwake(resume);
      else resume();
    });
  }
}
