/**
 * What the worlds of all recipes share: a keeper, clients on machines of their own, faults, and a quiet end with
 * progress.
 */
import type { ZooKeeperServerList } from "../../src/protocols/zookeeper/hosts.ts";
import { applyFaults, faultInTime, type FaultTargets } from "./apply_faults.ts";
import { drawFaults, type Fault } from "./fault_plan.ts";
import { keeperPort, keeperProgram } from "../coordination/simulation/lock/keeper_program.ts";
import type { ClientWorld } from "./recipe_client.ts";
import { SessionOracle } from "./session_oracle.ts";
import type { RunOptions, RunOutcome, RunPlan } from "./simulation.ts";
import { StoredTree } from "./stored_tree.ts";
import { Chance } from "./chance.ts";
import { SimDisk } from "./sim_disk.ts";
import { SimNetwork } from "./sim_network.ts";
import { SimProcess, type SimProgram } from "./sim_process.ts";
import { SimWorld } from "./sim_world.ts";

export interface RecipeWorldOptions {
  readonly sessionTimeoutMs: number;
  readonly tickTimeMs: number;
  readonly clients: number;
  /** Half of the difference of the fastest and the slowest clock, as a fraction. */
  readonly clockSpread: number;
  /** The client takes its server for one that stands alone, so that its lease is as long as can be. */
  readonly isDirect: boolean;
  readonly flushMs: number;
  readonly quietMs: number;
  /** The keeper has its real database. */
  readonly isSqlite?: boolean;
  /**
   * Each commit of the whole run takes half of this time to all of it, in milliseconds; left out for an ordinary disk.
   */
  readonly slowCommitMs?: number;
}

/** A part of the runs has a disk whose commits take longer than a part of the session timeout, to its end. */
export function drawSlowCommits(
  chance: Chance,
  sessionTimeoutMs: number,
  parts: readonly number[] = [0.4, 0.7, 1.2, 2],
): Pick<RecipeWorldOptions, "slowCommitMs"> {
  const own = chance.fork("slow commits");
  return own.is(0.1) ? { slowCommitMs: own.oneOf(parts) * sessionTimeoutMs } : {};
}

/** A client is served within the time of so many commits, for each client before it. */
const commitsToServe = 12;

/** What slow commits add to the longest time until each client has been served. */
export function slowCommitsMs({ slowCommitMs = 0, clients }: RecipeWorldOptions): number {
  return commitsToServe * clients * slowCommitMs;
}

/** Marks that every world must reach. */
export const recipeMarks = ["effect commit torn by a power cut", "effect commit kept by a power cut"];

/** The time after a moment within which the fault comes, in milliseconds. */
const momentMs = 5;
const keeperHost = "10.0.0.1";
const wallStartMs = 1_800_000_000_000;
const socketPath = "/run/keeper.sock";

export function drawRecipeOptions(chance: Chance): RecipeWorldOptions {
  const sessionTimeoutMs = chance.oneOf([2000, 4000, 10_000, 20_000]);
  return {
    sessionTimeoutMs,
    tickTimeMs: chance.oneOf([20, 100, 500]),
    clients: chance.whole(2, 5),
    clockSpread: chance.oneOf([0, 0.005, 0.024]),
    isDirect: chance.is(0.6),
    flushMs: chance.oneOf([0.2, 2, 10]),
    quietMs: Math.max(30_000, 3 * sessionTimeoutMs),
    isSqlite: chance.is(0.15),
  };
}

/** The plan of a seed: the options of the world, and the faults until its quiet end. */
export function drawPlan<Options extends RecipeWorldOptions>(
  world: string,
  seed: number,
  drawOptions: (chance: Chance) => Options,
): RunPlan {
  const chance = new Chance(seed).fork("plan");
  const options = drawOptions(chance);
  const clients = Array.from({ length: options.clients }, (_, index) => `c${index + 1}`);
  const faults = drawFaults(chance.fork("faults"), {
    untilMs: options.quietMs,
    sessionTimeoutMs: options.sessionTimeoutMs,
    clients,
    server: "keeper",
  });
  return { world, seed, options: { ...options } as unknown as RunPlan["options"], faults };
}

/** A fault with this target waits for the next commit of the keeper, and comes while it is on its way. */
const keeperCommit = "commit of keeper";

/** Aims most of the keeper's deaths at commits, and adds some power cuts. */
export function atCommits(plan: RunPlan, counts: readonly number[] = [0, 0, 1, 2]): RunPlan {
  const chance = new Chance(plan.seed).fork("deaths in commits");
  const isDeath = ({ kind, target }: Fault) => (kind === "kill" || kind === "lose") && target === "keeper";
  const aimed = (fault: Fault) => isDeath(fault) && chance.is(0.8) ? { ...fault, target: keeperCommit } : fault;
  const untilMs = Number(plan.options["quietMs"]);
  const cuts = Array.from({ length: chance.oneOf(counts) }, (): Fault => {
    const at = chance.whole(0, untilMs - 1);
    return { at, kind: "lose", target: keeperCommit, forMs: Math.min(untilMs - at, chance.whole(20, 2000)) };
  });
  return { ...plan, faults: [...plan.faults.map(aimed), ...cuts] };
}

/** Adds bits of the keeper's disk that are others for some time. */
export function withFlippedBits(plan: RunPlan, counts: readonly number[]): RunPlan {
  const chance = new Chance(plan.seed).fork("flipped bits");
  const untilMs = Number(plan.options["quietMs"]);
  const flips = Array.from({ length: chance.oneOf(counts) }, (): Fault => {
    const at = chance.whole(0, untilMs - 1);
    return { at, kind: "flipped bit", target: "keeper", forMs: Math.min(untilMs - at, chance.whole(20, 2500)) };
  });
  return { ...plan, faults: [...plan.faults, ...flips] };
}

interface RecipeRun extends RunOptions {
  readonly program: SimProgram;
  /**
   * The programs of further processes by their names, each on a machine of its own. They end by themselves when it is
   * quiet.
   */
  readonly others?: Readonly<Record<string, SimProgram>>;
  /** A process that holds something now: faults aim at it. */
  readonly holder: () => SimProcess | undefined;
  /**
   * Targets of faults that wait for something: calls back once when it happens, with the process that the fault
   * concerns.
   */
  readonly moments?: Readonly<Record<string, (call: (process: SimProcess, withinMs?: number) => void) => void>>;
  /** The longest time until each client has been served, when there are no faults. */
  readonly servedWithinMs: number;
  /** Called when all clients must have been served. */
  readonly atServed?: () => void;
}

export class RecipeWorld implements ClientWorld {
  readonly world: SimWorld;
  readonly network: SimNetwork;
  readonly tree: StoredTree;
  readonly sessions: SessionOracle;
  readonly servers: ZooKeeperServerList;
  readonly options: RecipeWorldOptions;
  readonly served = new Set<string>();
  readonly done = new Set<string>();
  readonly #plan: RunPlan;
  readonly #disk: SimDisk;
  readonly #clocks: Chance;

  constructor(plan: RunPlan, { log }: RunOptions = {}) {
    const options = this.options = plan.options as unknown as RecipeWorldOptions;
    this.#plan = plan;
    this.world = new SimWorld({ seed: plan.seed, log });
    this.network = new SimNetwork(this.world);
    this.#disk = new SimDisk(this.world, "keeper", options);
    this.#disk.flushMs = options.flushMs;
    this.#disk.faults.slow += options.slowCommitMs ?? 0;
    this.tree = new StoredTree(this.world, this.#disk);
    this.sessions = new SessionOracle(this.world, this.tree, { ...options, faults: plan.faults });
    this.#clocks = this.world.chance.fork("clocks");
    this.network.forwardPath(socketPath, keeperHost, keeperPort);
    this.servers = {
      addresses: [
        options.isDirect ? { kind: "unix", path: socketPath } : { kind: "tcp", host: keeperHost, port: keeperPort },
      ],
      chroot: "",
    };
  }

  /** True at the quiet end: each client is served once more, and ends. */
  readonly isQuiet = (): boolean => this.world.nowMs >= this.options.quietMs;

  async run(
    { program, others = {}, holder, moments = {}, servedWithinMs, atServed, untilMs }: RecipeRun,
  ): Promise<RunOutcome> {
    const { world, network, options } = this;
    const { tickTimeMs, clients, quietMs, sessionTimeoutMs } = options;
    const disk = this.#disk;
    const keeper = new SimProcess(
      this.#machine(keeperHost),
      "keeper",
      keeperProgram({ host: keeperHost, tickTimeMs, disk, network }),
    );
    this.sessions.keeper = keeper;
    const all = Array.from(
      { length: clients },
      (_, index) => new SimProcess(this.#machine(`10.0.1.${index + 1}`), `c${index + 1}`, program),
    );
    const more = Object.entries(others).map(([name, other], at) =>
      new SimProcess(this.#machine(`10.0.2.${at + 1}`), name, other)
    );
    const processes = [keeper, ...all, ...more];
    const byName = new Map(processes.map((one) => [one.name, one]));
    const target = (name: string) => name === "holder" ? holder() : byName.get(name);
    this.#applyFaults({ world, network, diskOf: () => disk, target }, {
      [keeperCommit]: (call) => disk.atNextCommit((durationMs) => call(keeper, durationMs)),
      ...moments,
    });
    for (const one of processes) world.after(world.chance.between(0, 50), () => one.start());
    const servedMs = quietMs + servedWithinMs;
    world.after(servedMs, () => {
      const waiting = all.filter(({ name }) => !this.done.has(name)).map(({ name }) => name);
      if (waiting.length > 0) world.fail("never served", `${waiting.join(", ")}; done: ${[...this.done].join(", ")}`);
      atServed?.();
    });
    const endMs = servedMs + 2 * sessionTimeoutMs + 4 * (options.slowCommitMs ?? 0);
    world.after(endMs, () => this.tree.checkNothingLeft());
    try {
      await world.run(untilMs ?? endMs + 1);
    } finally {
      disk[Symbol.dispose]();
    }
    return world.outcome;
  }

  #applyFaults(targets: FaultTargets, moments: NonNullable<RecipeRun["moments"]>): void {
    const { world, options: { quietMs } } = this;
    const chance = world.chance.fork("moments in commits");
    for (const fault of this.#plan.faults) {
      const wait = moments[fault.target];
      if (wait === undefined) applyFaults([fault], targets);
      else {
        world.after(fault.at, () =>
          wait((process, withinMs = momentMs) => {
            const [afterMs, leftMs] = [chance.next() * withinMs, quietMs - world.nowMs];
            applyFaults(faultInTime(fault, { target: process.name, afterMs, leftMs }), targets);
          }));
      }
    }
  }

  #machine(host: string) {
    const { clockSpread } = this.options;
    const clocks = this.#clocks;
    return this.world.machine(host, {
      // The extremes are what a lease must stand; most clocks have one of them.
      clockRate: 1 + clockSpread * clocks.oneOf([-1, 1, clocks.between(-1, 1)]),
      wallMs: wallStartMs + clocks.between(-5000, 5000),
    });
  }
}
