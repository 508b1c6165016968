/**
 * Contenders of locks at one keeper, all of them real, under faults; and a quiet end in which each contender must be
 * served.
 */
import type { LockMode } from "../../../../src/base/process/lease.ts";
import {
  drawPlan,
  drawSlowCommits,
  recipeMarks,
  RecipeWorld,
  type RecipeWorldOptions,
  slowCommitsMs,
} from "../../../world/recipe_world.ts";
import type { RunOptions, RunOutcome, RunPlan, Simulation } from "../../../world/simulation.ts";
import type { Chance } from "../../../world/chance.ts";
import { contenderProgram } from "./contender_program.ts";
import { LockOracle } from "./lock_oracle.ts";
import { operatorProgram } from "./operator_program.ts";
import { QueueOracle } from "./queue_oracle.ts";

interface LockWorldOptions extends RecipeWorldOptions {
  readonly isElection: boolean;
  readonly locks: number;
  readonly modes: readonly LockMode[];
  readonly limit: number;
  readonly priorities: readonly number[];
  readonly jobMsMax: number;
  readonly isEager: boolean;
  /** An operator takes locks back. */
  readonly hasOperator?: boolean;
}

/** Modes of the contenders of one lock. */
const mixtures: readonly (readonly LockMode[])[] = [
  ["exclusive"],
  ["exclusive"],
  ["permit"],
  ["shared", "exclusive"],
  ["shared", "exclusive", "exclusive"],
];

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
    isSqlite: chance.is(0.1),
    hasOperator: chance.fork("operator").is(0.25),
    ...drawSlowCommits(chance, sessionTimeoutMs),
  };
}

/** The longest time until each contender has been served, when there are no faults. */
function servedWithinMs(options: LockWorldOptions): number {
  const { sessionTimeoutMs, clients, jobMsMax } = options;
  return 4 * sessionTimeoutMs + 2 * jobMsMax + clients * 4000 + 20_000 + slowCommitsMs(options);
}

async function run(plan: RunPlan, { log, untilMs }: RunOptions = {}): Promise<RunOutcome> {
  const options = plan.options as unknown as LockWorldOptions;
  const shared = new RecipeWorld(plan, { log });
  const oracle = new LockOracle(shared.world, shared.tree, options);
  const queue = new QueueOracle(shared.world, shared.tree, oracle);
  const names = Array.from({ length: options.locks }, (_, index) => `lock${index + 1}`);
  const contenders = Object.assign(shared, { oracle, queue, settings: { ...options, names } });
  return await shared.run({
    program: contenderProgram(contenders),
    others: options.hasOperator === true ? { operator: operatorProgram(contenders) } : {},
    holder: () => oracle.holder,
    servedWithinMs: servedWithinMs(options),
    untilMs,
  });
}

const marks = [
  ...["grants", "mark session of a grant ended", "mark resumed without the lock", "mark lock lost at work"],
  "mark release without a response",
  ...recipeMarks,
];

export const lockSimulation: Simulation = {
  name: "lock",
  plan: (seed) => drawPlan("lock", seed, (chance) => drawOptions(chance, false)),
  run,
  marks: [...marks, "mark grant in advance", "mark grant withdrawn"],
  gateSeeds: 80,
};

export const electionSimulation: Simulation = {
  name: "election",
  plan: (seed) => drawPlan("election", seed, (chance) => drawOptions(chance, true)),
  run,
  marks: [...marks, "mark leadership revoked"],
  gateSeeds: 40,
  gateFrom: 70,
};
