/**
 * The full dose:
 * `scripts/fault barrier [--rounds N | --minutes M] [--seed S] [--parallel P] [--backend NAME] [--only ROUND]`.
 */
import process from "node:process";
import { doseArguments } from "../../../support/dose_arguments.ts";
import { faultBackends } from "../lock/plan.ts";
import { sessionTimeoutMs } from "../lock/wrappers.ts";
import { barrierFigures, barrierLine, runBarrierCampaign } from "./campaign.ts";
import { planBarrierRounds } from "./plan.ts";

const { rounds, isOver, seed, parallel, backends, isWanted } = doseArguments(faultBackends);
const plans = planBarrierRounds(seed, rounds, backends).filter(isWanted);
console.log(`At most ${plans.length} rounds of baton barrier, T = ${sessionTimeoutMs} ms, --seed ${seed}`);
const results = await runBarrierCampaign(plans, {
  parallel,
  isOver,
  finished: (result) => console.log(barrierLine(result)),
});
console.log(`\n${barrierFigures(results)}\n--seed ${seed}`);
process.exit(results.every(({ failures }) => failures.length === 0) ? 0 : 1);
