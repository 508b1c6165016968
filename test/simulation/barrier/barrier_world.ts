/** Participants of a barrier at one keeper, all of them real, under faults; and a quiet end in which each one must be started. */
import type { OnMemberLost } from "../../../src/coordination/barrier/barrier_state.ts";
import {
  atCommits,
  drawPlan,
  drawRecipeOptions,
  recipeMarks,
  RecipeWorld,
  type RecipeWorldOptions,
} from "../recipe_world.ts";
import type { RunOptions, RunOutcome, RunPlan, Simulation } from "../simulation.ts";
import type { Chance } from "../world/chance.ts";
import { BarrierOracle } from "./barrier_oracle.ts";
import { participantProgram } from "./participant_program.ts";

interface BarrierWorldOptions extends RecipeWorldOptions {
  readonly parties: number;
  readonly onLost: OnMemberLost;
  readonly hasMismatches: boolean;
  readonly hasGate: boolean;
  readonly jobMsMax: number;
  readonly isEager: boolean;
}

function drawOptions(chance: Chance): BarrierWorldOptions {
  const common = drawRecipeOptions(chance);
  return {
    ...common,
    parties: chance.whole(2, common.clients),
    onLost: chance.oneOf(["fail", "wait"]),
    hasMismatches: chance.is(0.2),
    hasGate: chance.is(0.3),
    jobMsMax: chance.oneOf([0, 5, 300, common.sessionTimeoutMs, 2 * common.sessionTimeoutMs]),
    isEager: chance.is(0.7),
  };
}

/** The longest time until each participant has been started, when there are no faults. */
function servedWithinMs({ sessionTimeoutMs, clients, jobMsMax }: BarrierWorldOptions): number {
  return 4 * sessionTimeoutMs + 2 * jobMsMax + clients * 4000 + 20_000;
}

async function run(plan: RunPlan, { log, untilMs }: RunOptions = {}): Promise<RunOutcome> {
  const options = plan.options as unknown as BarrierWorldOptions;
  const shared = new RecipeWorld(plan, { log });
  const oracle = new BarrierOracle(shared.world, shared.tree, options);
  return await shared.run({
    program: participantProgram(Object.assign(shared, { oracle, settings: options })),
    holder: () => oracle.holder,
    servedWithinMs: servedWithinMs(options),
    untilMs,
  });
}

export const barrierSimulation: Simulation = {
  name: "barrier",
  plan: (seed) => atCommits(drawPlan("barrier", seed, drawOptions)),
  run,
  marks: [
    ...["starts", "mark participant gone before the start", "mark barrier_timeout", "mark barrier_broken"],
    ...["mark limit_mismatch", "mark membership lost at work", "mark gate closed", "mark gate passed"],
    ...recipeMarks,
  ],
  gateSeeds: 24,
  // The second one has the real database.
  traceSeeds: { from: 15, seeds: 2 },
};
