/** The full dose: `scripts/fault pool [--rounds N] [--seed S] [--parallel P] [--backend NAME] [--only ROUND]`. */
import { randomInt } from "node:crypto";
import process from "node:process";
import { parseArgs } from "node:util";
import { hasPeer } from "../../support/peers.ts";
import { faultBackends } from "../lock/plan.ts";
import { sessionTimeoutMs } from "../lock/wrappers.ts";
import { poolFigures, poolLine, runPoolCampaign } from "./campaign.ts";
import { planPoolRounds } from "./plan.ts";

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
const plans = planPoolRounds(seed, Number(values.rounds), backends)
  .filter(({ number }) => values.only === undefined || values.only.includes(String(number)));
console.log(`${plans.length} rounds of baton pool, T = ${sessionTimeoutMs} ms, --seed ${seed}`);
const results = await runPoolCampaign(plans, {
  parallel: Number(values.parallel),
  finished: (result) => console.log(poolLine(result)),
});
console.log(`\n${poolFigures(results)}\n--seed ${seed}`);
process.exit(results.every(({ failures }) => failures.length === 0) ? 0 : 1);
