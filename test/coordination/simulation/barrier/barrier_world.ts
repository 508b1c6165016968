/**
 * Participants of a barrier at one keeper, all of them real, under faults; and a quiet end in which each one must be
 * started.
 */
import type { BarrierMemberLossPolicy } from "../../../../src/coordination/barrier/barrier_state.ts";
import type { Fault } from "../../../world/fault_plan.ts";
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
import { Chance } from "../../../world/chance.ts";
import { BarrierOracle } from "./barrier_oracle.ts";
import { participantProgram } from "./participant_program.ts";

interface BarrierWorldOptions extends RecipeWorldOptions {
  readonly parties: number;
  readonly onLost: BarrierMemberLossPolicy;
  readonly hasMismatches: boolean;
  readonly hasGate: boolean;
  readonly hasOperator?: boolean;
  readonly hasShortWaits?: boolean;
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
    hasOperator: chance.is(0.3),
    hasShortWaits: chance.is(0.3),
    ...drawSlowCommits(chance, common.sessionTimeoutMs, [0.4]),
  };
}

/** The longest time until each participant has been started, when there are no faults. */
function servedWithinMs(options: BarrierWorldOptions): number {
  const { sessionTimeoutMs, clients, jobMsMax } = options;
  return 4 * sessionTimeoutMs + 2 * jobMsMax + clients * 4000 + 20_000 + slowCommitsMs(options);
}

/** A fault with this target waits for the next response to a round, and concerns the process that has responded. */
const responder = "responder";

/** Adds faults of participants that have responded: the others start the barrier meanwhile. */
function atResponses(plan: RunPlan): RunPlan {
  const chance = new Chance(plan.seed).fork("faults at responses");
  const untilMs = Number(plan.options["quietMs"]);
  const T = Number(plan.options["sessionTimeoutMs"]);
  const faults = Array.from({ length: chance.oneOf([0, 2, 4, 6]) }, (): Fault => {
    const at = chance.whole(0, untilMs - 1);
    const forMs = Math.min(untilMs - at, Math.round(T * chance.between(0.2, 1.1)));
    const kind = chance.oneOf(["stop", "stop", "suspend", "cut"] as const);
    return kind === "cut"
      ? { at, kind, target: responder, direction: chance.oneOf(["to", "from", "both"]), forMs }
      : { at, kind, target: responder, forMs };
  });
  return { ...plan, faults: [...plan.faults, ...faults] };
}

async function run(plan: RunPlan, { log, untilMs }: RunOptions = {}): Promise<RunOutcome> {
  const options = plan.options as unknown as BarrierWorldOptions;
  const shared = new RecipeWorld(plan, { log });
  const oracle = new BarrierOracle(shared.world, shared.tree, options);
  return await shared.run({
    program: participantProgram(Object.assign(shared, { oracle, settings: options })),
    holder: () => oracle.holder,
    moments: { [responder]: (call) => oracle.atNextResponse(call) },
    servedWithinMs: servedWithinMs(options),
    untilMs,
  });
}

export const barrierSimulation: Simulation = {
  name: "barrier",
  plan: (seed) => atResponses(atCommits(drawPlan("barrier", seed, drawOptions))),
  run,
  marks: [
    ...["starts", "mark participant gone before the start", "mark barrier_timeout", "mark barrier_broken"],
    ...["mark limit_mismatch", "mark membership lost at work", "mark gate closed", "mark gate passed"],
    "mark response deleted",
    ...recipeMarks,
  ],
  gateSeeds: 24,
  // The second one has the real database.
  traceSeeds: { from: 15, seeds: 2 },
};
