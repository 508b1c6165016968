/** Contenders of locks at one keeper, all of them real, under faults; and a quiet end in which each contender must be served. */
import type { LockMode } from "../../../src/process/lease.ts";
import type { ZooKeeperServerList } from "../../../src/zookeeper/hosts.ts";
import { applyFaults } from "../apply_faults.ts";
import { drawFaults } from "../fault_plan.ts";
import type { RunOptions, RunOutcome, RunPlan, Simulation } from "../simulation.ts";
import { Chance } from "../world/chance.ts";
import { SimDisk } from "../world/sim_disk.ts";
import { SimNetwork } from "../world/sim_network.ts";
import { SimProcess } from "../world/sim_process.ts";
import { SimWorld } from "../world/sim_world.ts";
import { contenderProgram, type ContenderWorld } from "./contender_program.ts";
import { keeperPort, keeperProgram } from "./keeper_program.ts";
import { LockOracle } from "./lock_oracle.ts";

interface LockWorldOptions {
  readonly isElection: boolean;
  readonly sessionTimeoutMs: number;
  readonly tickTimeMs: number;
  readonly clients: number;
  readonly locks: number;
  readonly modes: readonly LockMode[];
  readonly limit: number;
  readonly priorities: readonly number[];
  readonly jobMsMax: number;
  /** Half of the difference of the fastest and the slowest clock, as a fraction. */
  readonly clockSpread: number;
  /** The client takes its server for one that stands alone, so that its lease is as long as can be. */
  readonly isDirect: boolean;
  readonly isEager: boolean;
  readonly flushMs: number;
  readonly quietMs: number;
}

/** Modes of the contenders of one lock. */
const mixtures: readonly (readonly LockMode[])[] = [
  ["exclusive"],
  ["exclusive"],
  ["permit"],
  ["shared", "exclusive"],
  ["shared", "exclusive", "exclusive"],
];
const keeperHost = "10.0.0.1";
const wallStartMs = 1_800_000_000_000;
const socketPath = "/run/keeper.sock";

function drawOptions(chance: Chance, isElection: boolean): LockWorldOptions {
  const sessionTimeoutMs = chance.oneOf([2000, 4000, 10_000, 20_000]);
  return {
    isElection,
    sessionTimeoutMs,
    tickTimeMs: chance.oneOf([20, 100, 500]),
    clients: chance.whole(2, 5),
    locks: chance.oneOf([1, 1, 1, 2]),
    modes: isElection ? ["exclusive"] : chance.oneOf(mixtures),
    limit: chance.whole(1, 3),
    priorities: chance.oneOf([[100], [100], [50, 100, 100]]),
    jobMsMax: chance.oneOf([5, 300, sessionTimeoutMs, 3 * sessionTimeoutMs]),
    clockSpread: chance.oneOf([0, 0.005, 0.024]),
    isDirect: chance.is(0.6),
    isEager: chance.is(0.7),
    flushMs: chance.oneOf([0.2, 2, 10]),
    quietMs: Math.max(60_000, 5 * sessionTimeoutMs),
  };
}

function drawPlan(world: string, seed: number): RunPlan {
  const chance = new Chance(seed).fork("plan");
  const options = drawOptions(chance, world === "election");
  const clients = Array.from({ length: options.clients }, (_, index) => `c${index + 1}`);
  const faults = drawFaults(chance.fork("faults"), {
    untilMs: options.quietMs,
    sessionTimeoutMs: options.sessionTimeoutMs,
    clients,
    server: "keeper",
  });
  return { world, seed, options: { ...options }, faults };
}

/** The longest time until each contender has been served, when there are no faults. */
function servedWithinMs({ sessionTimeoutMs, clients, jobMsMax }: LockWorldOptions): number {
  return 4 * sessionTimeoutMs + 2 * jobMsMax + clients * 4000 + 20_000;
}

async function run(plan: RunPlan, { log, untilMs }: RunOptions = {}): Promise<RunOutcome> {
  const options = plan.options as unknown as LockWorldOptions;
  const world = new SimWorld({ seed: plan.seed, log });
  const network = new SimNetwork(world);
  const disk = new SimDisk(world, "keeper");
  disk.flushMs = options.flushMs;
  const oracle = new LockOracle(world, disk, options);
  const clocks = world.chance.fork("clocks");
  const machine = (host: string) =>
    world.machine(host, {
      // The extremes are what a lease must stand; most clocks have one of them.
      clockRate: 1 + options.clockSpread * clocks.oneOf([-1, 1, clocks.between(-1, 1)]),
      wallMs: wallStartMs + clocks.between(-5000, 5000),
    });
  const keeper = new SimProcess(
    machine(keeperHost),
    "keeper",
    keeperProgram({ host: keeperHost, tickTimeMs: options.tickTimeMs, disk, network }),
  );
  network.forwardPath(socketPath, keeperHost, keeperPort);
  const servers: ZooKeeperServerList = {
    addresses: [
      options.isDirect ? { kind: "unix", path: socketPath } : { kind: "tcp", host: keeperHost, port: keeperPort },
    ],
    chroot: "",
  };
  const shared: ContenderWorld = {
    network,
    oracle,
    servers,
    settings: { ...options, names: Array.from({ length: options.locks }, (_, index) => `lock${index + 1}`) },
    isQuiet: () => world.nowMs >= options.quietMs,
    served: new Set(),
    done: new Set(),
  };
  const contenders = Array.from(
    { length: options.clients },
    (_, index) => new SimProcess(machine(`10.0.1.${index + 1}`), `c${index + 1}`, contenderProgram(shared)),
  );
  const processes = [keeper, ...contenders];
  const byName = new Map(processes.map((one) => [one.name, one]));
  const target = (name: string) => name === "holder" ? oracle.holder : byName.get(name);
  applyFaults(plan.faults, { world, network, diskOf: () => disk, target });
  for (const one of processes) world.after(world.chance.between(0, 50), () => one.start());

  const servedMs = options.quietMs + servedWithinMs(options);
  world.after(servedMs, () => {
    const waiting = contenders.filter(({ name }) => !shared.done.has(name)).map(({ name }) => name);
    if (waiting.length > 0) world.fail("never served", `${waiting.join(", ")}; done: ${[...shared.done].join(", ")}`);
  });
  const endMs = servedMs + 2 * options.sessionTimeoutMs;
  world.after(endMs, () => oracle.checkNothingLeft());
  await world.run(untilMs ?? endMs + 1);
  return {
    trace: world.trace.value,
    failure: world.failure,
    turns: world.turns,
    simulatedMs: world.nowMs,
    counts: world.counts,
  };
}

const marks = [
  ...["grants", "mark session of a grant ended", "mark resumed without the lock", "mark lock lost at work"],
  ...["mark release without a response", "effect commit torn by a power cut", "effect commit kept by a power cut"],
];

export const lockSimulation: Simulation = {
  name: "lock",
  plan: (seed) => drawPlan("lock", seed),
  run,
  marks: [...marks, "mark grant in advance", "mark grant withdrawn"],
  gateSeeds: 80,
};

export const electionSimulation: Simulation = {
  name: "election",
  plan: (seed) => drawPlan("election", seed),
  run,
  marks: [...marks, "mark leadership revoked"],
  gateSeeds: 40,
};
