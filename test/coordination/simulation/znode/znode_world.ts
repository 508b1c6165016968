/**
 * Clients that change and read the same few nodes of one keeper under faults. The checker judges their history, a judge
 * the watches, the sequence numbers and the ends of sessions.
 */
import { checkHistory } from "../../../checker/check_history.ts";
import { historyLines } from "../../../checker/history_lines.ts";
import {
  atCommits,
  drawPlan,
  drawRecipeOptions,
  recipeMarks,
  RecipeWorld,
  withFlippedBits,
} from "../../../world/recipe_world.ts";
import type { RecipeWorldOptions } from "../../../world/recipe_world.ts";
import type { RunOptions, RunOutcome, RunPlan, Simulation } from "../../../world/simulation.ts";
import type { Chance } from "../../../world/chance.ts";
import { NodeOracle } from "./node_oracle.ts";
import { znodeProgram, ZnodeRecords } from "./znode_program.ts";

export interface ZnodeWorldOptions extends RecipeWorldOptions {
  /** The longest pause between two calls, in milliseconds. */
  readonly pauseMsMax: number;
  readonly hasEphemerals: boolean;
}

function drawOptions(chance: Chance): ZnodeWorldOptions {
  return {
    ...drawRecipeOptions(chance),
    sessionTimeoutMs: chance.oneOf([2000, 4000, 10_000]),
    quietMs: 30_000,
    flushMs: chance.oneOf([0.2, 2, 10, 50]),
    isSqlite: chance.is(0.3),
    pauseMsMax: chance.oneOf([10, 50, 300]),
    hasEphemerals: chance.is(0.5),
  };
}

async function run(plan: RunPlan, { log, untilMs }: RunOptions = {}): Promise<RunOutcome> {
  const options = plan.options as unknown as ZnodeWorldOptions;
  const shared = new RecipeWorld(plan, { log });
  const { world } = shared;
  const oracle = new NodeOracle(world, shared.tree);
  const records = new ZnodeRecords();
  const outcome = await shared.run({
    program: znodeProgram(Object.assign(shared, { oracle, records, settings: options })),
    holder: () => oracle.worker,
    servedWithinMs: 4 * options.sessionTimeoutMs + 10_000,
    untilMs,
  });
  if (outcome.failure !== null) return outcome;
  judge(shared, records, log);
  return world.outcome;
}

function judge({ world }: RecipeWorld, records: ZnodeRecords, log: RunOptions["log"]): void {
  for (const caller of records.callers) caller.sessionEnds(); // those of processes that died
  const { operations, surprises } = records;
  log?.(historyLines(operations, []));
  for (const surprise of surprises) world.fail("wrong response", surprise);
  const { violated, undecided } = checkHistory(operations, { stepsMax: 500_000 });
  for (const { why } of violated) world.fail("not linearizable", why);
  for (const { why } of undecided) world.fail("undecided", why);
  world.count("operations", operations.length);
  world.count("mark operation of unknown outcome", operations.filter(({ outcome }) => outcome === "unknown").length);
}

export const znodeSimulation: Simulation = {
  name: "znode",
  plan: (seed) => withFlippedBits(atCommits(drawPlan("znode", seed, drawOptions), [0, 2, 5, 10]), [0, 0, 1, 4]),
  run,
  marks: [
    ...["operations", "mark operation of unknown outcome", "mark watch fired", "mark watch fired after a reconnect"],
    ...["mark sequence number", "mark session expired", "effect flipped bit"],
    ...recipeMarks,
  ],
  gateSeeds: 16,
};
