/**
 * Calls of `baton lock` on machines of their own, with real supervision, real guards, and a model of the machines'
 * processes; one keeper, and faults of all of them. In the quiet end each machine must be served.
 */
import type { LockMode } from "../../../../src/base/process/lease.ts";
import { applyFaults } from "../../../world/apply_faults.ts";
import type { Fault } from "../../../world/fault_plan.ts";
import { atCommits, drawPlan, recipeMarks, RecipeWorld, type RecipeWorldOptions } from "../../../world/recipe_world.ts";
import type { RunOptions, RunOutcome, RunPlan, Simulation } from "../../../world/simulation.ts";
import { Chance } from "../../../world/chance.ts";
import { SimOs } from "../../../world/sim_os.ts";
import type { SimMachine, SimProcess } from "../../../world/sim_process.ts";
import { batonProgram, type JobSettings } from "./baton_program.ts";
import type { BatonProcess } from "./baton_process.ts";
import { habits, scriptHabits, startStrangers } from "./job_programs.ts";
import { JobOracle } from "./job_oracle.ts";

interface JobWorldOptions extends RecipeWorldOptions, Omit<JobSettings, "names" | "sessionTimeoutMs"> {
  readonly locks: number;
  /** The highest process number of a machine. */
  readonly pidMax: number;
  /** The longest usual time from fork to exec, in milliseconds. */
  readonly execMsMax: number;
  /** The part of the starts that takes longer. */
  readonly slowStarts: number;
  readonly hasStrangers: boolean;
}

function drawOptions(chance: Chance): JobWorldOptions {
  const sessionTimeoutMs = chance.oneOf([2000, 4000, 10_000]);
  const modes: readonly LockMode[] = chance.oneOf([["exclusive"], ["exclusive"], ["exclusive"], ["permit"]]);
  return {
    sessionTimeoutMs,
    tickTimeMs: chance.oneOf([20, 100]),
    clients: chance.whole(2, 3),
    locks: chance.oneOf([1, 1, 2]),
    modes,
    limit: 1 + chance.whole(0, 1),
    clockSpread: chance.oneOf([0, 0.005, 0.024]),
    isDirect: chance.is(0.6),
    flushMs: chance.oneOf([0.2, 2]),
    quietMs: Math.max(40_000, 5 * sessionTimeoutMs),
    isSqlite: false,
    jobMsMax: chance.oneOf([50, 1000, sessionTimeoutMs, 2 * sessionTimeoutMs]),
    habits: habits.filter(() => chance.is(0.5)).concat("plain"),
    killAfterMs: chance.oneOf([100, 1000, 5000]),
    freezes: chance.is(0.4),
    isForeground: chance.is(0.3),
    leavesRunning: chance.is(0.25),
    pauseMsMax: chance.oneOf([20, 500, 3000]),
    pidMax: chance.oneOf([600, 4096, 32_768]),
    execMsMax: chance.oneOf([1, 1, 20, 400]),
    hasStrangers: chance.is(0.6),
    jobs: chance.oneOf([1, 1, 1, 3]),
    slowStarts: chance.oneOf([0.02, 0.02, 0.3]),
    isHold: false,
    others: chance.fork("other users").oneOf(["none", "none", "none", "calm", "some"]),
  };
}

function drawHoldOptions(chance: Chance): JobWorldOptions {
  const options = drawOptions(chance);
  const pidMax = chance.oneOf([4096, 32_768]);
  const habitsOfScripts = scriptHabits.filter(() => chance.is(0.5)).concat("leaves a subshell");
  return {
    ...options,
    habits: habitsOfScripts,
    isHold: true,
    jobs: 1,
    isForeground: false,
    leavesRunning: false,
    pidMax,
  };
}

/** The longest run of another user's processes, for each of which a lock may have to be kept. */
const othersMsMax = 100_000;

const startOfCommand = "start of a command";
const [guardTarget, bothTarget] = ["guard", "baton and guard"];
const ownTargets: readonly string[] = [startOfCommand, guardTarget, bothTarget];

const isOwn = ({ kind, target }: Fault): boolean => kind === "signal" || ownTargets.includes(target);

/** Faults of the processes that hold, beside those of every world. */
function withJobFaults(plan: RunPlan): RunPlan {
  const chance = new Chance(plan.seed).fork("faults of jobs");
  const untilMs = Number(plan.options["quietMs"]);
  const T = Number(plan.options["sessionTimeoutMs"]);
  const kinds = (["guard", "both", "start", "signal", "holder"] as const).filter(() => chance.is(0.5));
  const everyMs = chance.oneOf([400, 2000, 8000]);
  const faults: Fault[] = [];
  for (let at = chance.between(0, everyMs); kinds.length > 0 && at < untilMs; at += chance.between(0, 2 * everyMs)) {
    const kind = chance.oneOf(["kill", "kill", "stop"] as const);
    const forMs = Math.round(Math.min(untilMs - at, chance.oneOf([20, T / 3, T, 2 * T]) * chance.between(0.5, 1.2)));
    const fault = { at: Math.round(at * 1000) / 1000, kind, forMs };
    switch (chance.oneOf(kinds)) {
      case "guard":
        faults.push({ ...fault, target: guardTarget });
        break;
      case "both":
        faults.push({ ...fault, target: bothTarget });
        break;
      case "start":
        faults.push({ ...fault, target: startOfCommand });
        break;
      case "holder":
        faults.push({ ...fault, target: "holder" });
        break;
      case "signal":
        faults.push({
          at: fault.at,
          kind: "signal",
          target: chance.oneOf(["holder", "holder", "c1"]),
          signal: chance.oneOf(["SIGTERM", "SIGINT", "SIGHUP", "SIGCONT"] as const),
        });
    }
  }
  return { ...plan, faults: [...plan.options["others"] === "calm" ? [] : plan.faults, ...faults] };
}

class JobFaults {
  readonly #shared: RecipeWorld;
  readonly #oracle: JobOracle;
  readonly #moments: Chance;
  readonly #batons: ReadonlyMap<SimProcess, BatonProcess>;
  #atStart: ((baton: BatonProcess, execMs: number) => void)[] = [];

  constructor(shared: RecipeWorld, oracle: JobOracle, batons: ReadonlyMap<SimProcess, BatonProcess>) {
    this.#shared = shared;
    this.#oracle = oracle;
    this.#batons = batons;
    this.#moments = shared.world.chance.fork("moments of starts");
  }

  apply(faults: readonly Fault[]): void {
    for (const fault of faults) this.#shared.world.after(fault.at, () => this.#begin(fault));
  }

  /** A command is being started. */
  start(baton: BatonProcess, execMs: number): void {
    for (const call of this.#atStart.splice(0)) call(baton, execMs);
  }

  #begin(fault: Fault): void {
    const { world } = this.#shared;
    if (fault.target === startOfCommand) {
      this.#atStart.push((baton, execMs) =>
        void world.after(execMs * this.#moments.next(), () => this.#strike(fault, baton, "start"))
      );
      return;
    }
    const baton = fault.target === "c1"
      ? [...this.#batons.values()].find(({ process, isAlive }) => process.name === "c1" && isAlive)
      : this.#oracle.holder;
    if (baton === undefined || baton.process.machine.isSuspended) return;
    world.log(() => `FAULT ${JSON.stringify(fault)}`);
    if (fault.kind === "signal") {
      world.count("effect signal");
      const { script } = baton;
      return baton.os.deliver(script !== null && this.#moments.is(0.5) ? script : baton.own, fault.signal);
    }
    if (fault.target === guardTarget || fault.target === bothTarget) this.#strikeGuard(fault, baton);
    if (fault.target === bothTarget) {
      world.after(
        this.#moments.oneOf([0, 0.5, 5, 50]) * this.#moments.next(),
        () => this.#strike(fault, baton, "both"),
      );
    }
  }

  #strike(fault: Fault, baton: BatonProcess, what: string): void {
    const { world, network } = this.#shared;
    if (!baton.isAlive || !("forMs" in fault)) return;
    const forMs = Math.min(fault.forMs, this.#shared.options.quietMs - world.nowMs);
    if (forMs <= 0) return;
    world.count(`mark ${fault.kind} of baton: ${what}`);
    const target = () => baton.process;
    applyFaults([{ ...fault, at: 0, forMs, target: "baton" } as Fault], {
      world,
      network,
      diskOf: () => undefined,
      target,
    });
  }

  #strikeGuard(fault: Fault, baton: BatonProcess): void {
    const { world } = this.#shared;
    const guard = baton.guards.findLast(({ sim, life }) => sim.life === life);
    if (guard === undefined || !("forMs" in fault)) return;
    const { sim, life } = guard;
    world.count(`mark ${fault.kind} of guard`);
    if (fault.kind === "kill") return sim.die("killed");
    sim.stop();
    world.after(fault.forMs, () => sim.life === life && sim.resume());
  }
}

async function run(plan: RunPlan, { log, untilMs }: RunOptions = {}): Promise<RunOutcome> {
  const options = plan.options as unknown as JobWorldOptions;
  const shared = new RecipeWorld({ ...plan, faults: plan.faults.filter((fault) => !isOwn(fault)) }, { log });
  const { world } = shared;
  const oracle = new JobOracle(world, shared.tree, { isCalm: options.others === "calm" });
  const batons = new Map<SimProcess, BatonProcess>();
  const faults = new JobFaults(shared, oracle, batons);
  faults.apply(plan.faults.filter(isOwn));
  const systems = new Map<SimMachine, SimOs>();
  const osOf = (machine: SimMachine): SimOs => {
    const known = systems.get(machine);
    if (known !== undefined) return known;
    const os = new SimOs(machine, options);
    os.onKill = (by, to, signal) => oracle.signalled(by, to, signal);
    os.onAdopt = (parent) => void (parent.sim !== null && world.count("mark orphan adopted by baton"));
    systems.set(machine, os);
    if (options.hasStrangers) startStrangers(os, { untilMs: options.quietMs });
    return os;
  };
  const names = Array.from({ length: options.locks }, (_, index) => `lock${index + 1}`);
  const program = batonProgram(Object.assign(shared, {
    oracle,
    osOf,
    settings: { ...options, names },
    execMs: (chance: Chance) =>
      chance.is(options.slowStarts) && !shared.isQuiet()
        ? chance.between(0, 2500)
        : chance.between(0.2, shared.isQuiet() ? 1 : options.execMsMax),
    begins: (baton: BatonProcess) => void batons.set(baton.process, baton),
    atStart: (baton: BatonProcess, execMs: number) => faults.start(baton, execMs),
  }));
  return await shared.run({
    program,
    holder: () => oracle.holder?.process,
    servedWithinMs: 3 * options.sessionTimeoutMs + options.clients * 3000 + 3 * options.jobMsMax + 15_000 +
      ((options.others ?? "none") === "none" ? 0 : othersMsMax),
    atServed: () => oracle.checkNothingLeft(),
    untilMs,
  });
}

/** Marks of both worlds. */
const sharedMarks = [
  ...recipeMarks,
  ...["grants", "effect signal", "mark guard ends the session", "mark guard kills a process"],
  ...["mark kill of guard", "mark stop of guard", "mark kill of baton: both", "mark stop of baton: both"],
  ...["frozen", "resumed", "guard_kills", "guard_replaced", "killing", "leftovers_stopped"]
    .map((kind) => `mark supervision: ${kind}`),
  ...["exited", "lost", "time_limit"].map((kind) => `mark ended: ${kind}`),
];

/** Scripts that hold a lock themselves, with `baton hold`. */
export const holdSimulation: Simulation = {
  name: "hold",
  plan: (seed) => withJobFaults(atCommits(drawPlan("hold", seed, drawHoldOptions))),
  run,
  marks: [...sharedMarks, "mark script asks for the release", "mark release: released"],
  gateSeeds: 30,
  traceSeeds: { from: 1, seeds: 2 },
};

export const jobSimulation: Simulation = {
  name: "job",
  plan: (seed) => withJobFaults(atCommits(drawPlan("job", seed, drawOptions))),
  run,
  marks: [
    ...sharedMarks,
    ...["mark kill of baton: start", "mark stop of baton: start"],
    ...[
      "mark stranger with a number that was used before",
      "mark command beside another one",
      "mark orphan adopted by baton",
      "mark process killed while it waits in the kernel",
      "mark another user's process",
      "mark guard keeps the session",
      "mark supervision: unstoppable",
    ],
    "mark supervision: leftovers_left",
    ...["signaled", "breach"].map((kind) => `mark ended: ${kind}`),
    ...[
      "suspended machine",
      "neither baton nor guard runs",
      "a daemon that the guard cannot find",
    ]
      .map((reason) => `mark outside the promise: ${reason}`),
  ],
  gateSeeds: 30,
  traceSeeds: { from: 1, seeds: 2 },
};
