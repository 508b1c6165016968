/** The full dose: `scripts/fault barrier [--rounds N] [--seed S] [--parallel P] [--backend NAME] [--only ROUND]`. */
import { randomInt } from "node:crypto";
import process from "node:process";
import { parseArgs } from "node:util";
import { hasPeer } from "../../support/peers.ts";
import { faultBackends } from "../lock/plan.ts";
import { sessionTimeoutMs } from "../lock/wrappers.ts";
import { barrierFigures, barrierLine, runBarrierCampaign } from "./campaign.ts";
import { planBarrierRounds } from "./plan.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "30" },
    seed: { type: "string", default: String(randomInt(2 ** 31)) },
    parallel: { type: "string", default: "4" },
    backend: { type: "string", multiple: true },
    only: { type: "string", multiple: true },
  },
});
const backends = faultBackends
  .filter(({ name }) => values.backend === undefined || values.backend.some((part) => name.includes(part)))
  .filter(({ peer }) => peer === null || hasPeer(peer));
const seed = Number(values.seed);
const plans = planBarrierRounds(seed, Number(values.rounds), backends)
  .filter(({ number }) => values.only === undefined || values.only.includes(String(number)));
console.log(`${plans.length} rounds of baton barrier, T = ${sessionTimeoutMs} ms, --seed ${seed}`);
const results = await runBarrierCampaign(plans, {
  parallel: Number(values.parallel),
  finished: (result) => console.log(barrierLine(result)),
});
console.log(`\n${barrierFigures(results)}\n--seed ${seed}`);
process.exit(results.every(({ failures }) => failures.length === 0) ? 0 : 1);
