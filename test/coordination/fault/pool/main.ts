/**
 * The full dose:
 * `scripts/fault pool [--rounds N | --minutes M] [--seed S] [--parallel P] [--backend NAME] [--only ROUND]`.
 */
import process from "node:process";
import { doseArguments } from "../../../support/dose_arguments.ts";
import { faultBackends } from "../lock/plan.ts";
import { sessionTimeoutMs } from "../lock/wrappers.ts";
import { poolFigures, poolLine, runPoolCampaign } from "./campaign.ts";
import { planPoolRounds } from "./plan.ts";

const { rounds, isOver, seed, parallel, backends, isWanted } = doseArguments(faultBackends);
const plans = planPoolRounds(seed, rounds, backends).filter(isWanted);
console.log(`At most ${plans.length} rounds of baton pool, T = ${sessionTimeoutMs} ms, --seed ${seed}`);
const results = await runPoolCampaign(plans, {
  parallel,
  isOver,
  finished: (result) => console.log(poolLine(result)),
});
console.log(`\n${poolFigures(results)}\n--seed ${seed}`);
process.exit(results.every(({ failures }) => failures.length === 0) ? 0 : 1);
