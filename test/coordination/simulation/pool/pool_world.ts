/** Runs of a pool at one keeper, all of them real, under faults; and a quiet end in which every item must be done. */
import { poolPath } from "../../../../src/coordination/pool/pool_path.ts";
import { LockOracle } from "../lock/lock_oracle.ts";
import {
  atCommits,
  drawPlan,
  drawRecipeOptions,
  drawSlowCommits,
  recipeMarks,
  RecipeWorld,
  type RecipeWorldOptions,
  slowCommitsMs,
} from "../../../world/recipe_world.ts";
import type { RunOptions, RunOutcome, RunPlan, Simulation } from "../../../world/simulation.ts";
import type { Chance } from "../../../world/chance.ts";
import { PoolOracle } from "./pool_oracle.ts";
import { componentName, poolProgram } from "./pool_program.ts";

interface PoolWorldOptions extends RecipeWorldOptions {
  readonly itemCount: number;
  readonly isQuery: boolean;
  readonly isRemembered: boolean;
  readonly isComing?: boolean;
  readonly total: number;
  readonly hasMismatches: boolean;
  readonly jobMsMax: number;
  readonly queryMsMax: number;
  readonly isEager: boolean;
}

function drawOptions(chance: Chance): PoolWorldOptions {
  const common = drawRecipeOptions(chance);
  const kind = chance.oneOf(["query", "query", "remembered", "remembered", "both", "plain"]);
  const itemCount = chance.oneOf([2, 5, 12]);
  return {
    ...common,
    itemCount,
    isQuery: kind === "query" || kind === "both",
    isRemembered: kind === "remembered" || kind === "both",
    isComing: chance.fork("coming").is(0.6),
    total: chance.oneOf([0, 0, 1, 2, 3]),
    hasMismatches: chance.is(0.3),
    jobMsMax: chance.oneOf([5, 300, 1500, common.sessionTimeoutMs]),
    queryMsMax: chance.oneOf([0, 100, 3000]),
    isEager: chance.is(0.7),
    // A run keeps leases while it writes: docs/limits.md wants a session timeout of six flushes where others write.
    ...(common.sessionTimeoutMs >= 10_000 && itemCount < 12
      ? drawSlowCommits(chance, common.sessionTimeoutMs, [1 / 6])
      : {}),
  };
}

/** The longest time until each host has run the pool, when there are no faults. */
function servedWithinMs(options: PoolWorldOptions): number {
  const { sessionTimeoutMs, clients, jobMsMax, itemCount, queryMsMax } = options;
  return 4 * sessionTimeoutMs + clients * (4000 + queryMsMax + itemCount * (400 + jobMsMax / 4)) + 2 * jobMsMax +
    20_000 + (1 + itemCount) * slowCommitsMs(options);
}

async function run(plan: RunPlan, { log, untilMs }: RunOptions = {}): Promise<RunOutcome> {
  const options = plan.options as unknown as PoolWorldOptions;
  const shared = new RecipeWorld(plan, { log });
  const { world, tree } = shared;
  const items = Array.from({ length: options.itemCount }, (_, index) => `item${index + 1}`);
  const settings = { ...options, items, path: poolPath(componentName) };
  const oracle = new PoolOracle(world, tree, { ...settings, locks: new LockOracle(world, tree, options) });
  addItemsAgain(shared, { items, oracle, options });
  return await shared.run({
    program: poolProgram(Object.assign(shared, { oracle, settings })),
    holder: () => oracle.holder,
    servedWithinMs: servedWithinMs(options),
    atServed: () => oracle.checkAllDone(),
    untilMs,
  });
}

/** Until the quiet end, items that were done are to be done again. */
function addItemsAgain(
  { world }: RecipeWorld,
  { items, oracle, options }: { items: readonly string[]; oracle: PoolOracle; options: PoolWorldOptions },
): void {
  const chance = world.chance.fork("items again");
  for (let atMs = 0; atMs < options.quietMs; atMs += chance.between(0, 2000)) {
    const item = chance.oneOf(items);
    world.after(atMs, () => oracle.addAgain(item));
  }
}

export const poolSimulation: Simulation = {
  name: "pool",
  plan: (seed) => atCommits(drawPlan("pool", seed, drawOptions)),
  run,
  marks: [
    ...["jobs", "runs of a pool", "mark limit reached", "mark limit_mismatch", "mark item is to do again"],
    ...["mark run stopped", "mark part of a list", "mark session of a grant ended"],
    ...recipeMarks,
  ],
  gateSeeds: 18,
  // The second one has the real database.
  traceSeeds: { from: 15, seeds: 2 },
};
