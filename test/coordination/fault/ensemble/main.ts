/**
 * The full dose:
 * `scripts/fault ensemble [--rounds N | --minutes M] [--seed S] [--sessions N] [--watches N] [--only ROUND]`.
 */
import process from "node:process";
import { parseArgs } from "node:util";
import { zooKeeperEnsemble } from "../../../support/backends.ts";
import { installedBackends } from "../../../support/dose_arguments.ts";
import { doseLength, doseOptions } from "../../../support/run_rounds.ts";
import { ensembleLine, runEnsembleCampaign, sessionTimeoutMs } from "./campaign.ts";
import { planEnsembleRounds } from "./plan.ts";

const { values } = parseArgs({
  options: {
    ...doseOptions,
    sessions: { type: "string", default: "8" },
    watches: { type: "string", default: "6000" },
    only: { type: "string", multiple: true },
  },
});
installedBackends([zooKeeperEnsemble]);
const seed = Number(values.seed);
const { rounds, isOver } = doseLength(values, 60);
const plans = planEnsembleRounds(seed, rounds)
  .filter(({ number }) => values.only === undefined || values.only.includes(String(number)));
console.log(`At most ${plans.length} rounds of clients on three servers, T = ${sessionTimeoutMs} ms, --seed ${seed}`);
const { results, failures, disagreed, figures } = await runEnsembleCampaign(plans, {
  sessions: Number(values.sessions),
  watches: Number(values.watches),
  isOver,
  changes: Math.ceil(Number(values.watches) / 20),
  finished: (result) => console.log(ensembleLine(result)),
});
const failed = results.filter((result) => result.failures.length > 0).length;
if (disagreed.length > 0) {
  const some = disagreed.slice(0, 5).join(", ");
  console.log(`NOT JUDGED: what hangs on where servers disagree, ${disagreed.length} nodes: ${some} …`);
}
for (const failure of failures.slice(0, 50)) console.log(`FAIL ${failure}`);
console.log(`\n${figures}\n${failed} rounds failed, ${failures.length} faults of the history\n--seed ${seed}`);
process.exit(failed === 0 && failures.length === 0 ? 0 : 1);
