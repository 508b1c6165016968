/**
 * The full dose: `scripts/fault retry [--rounds N | --minutes M] [--messages N] [--seed S] [--parallel P] [--only
 * ROUND] [--store postgres]`.
 */
import process from "node:process";
import { parseArgs } from "node:util";
import { doseLength, doseOptions } from "../../../support/run_rounds.ts";
import { planDatabaseRounds, planRetryRounds, retryLine, runRetryCampaign, slowRounds } from "./campaign.ts";

const { values } = parseArgs({
  options: {
    ...doseOptions,
    // Of a round by HTTP; 16 rounds have 12 of those and 4 by commands.
    messages: { type: "string", default: "5000" },
    parallel: { type: "string", default: "2" },
    only: { type: "string", multiple: true },
    // Left out: in folders.
    store: { type: "string", default: "folder" },
  },
});
const seed = Number(values.seed);
const { rounds, isOver } = doseLength(values, 16);
if (values.store !== "folder" && values.store !== "postgres") {
  console.error(`--store takes folder or postgres, not "${values.store}"`);
  process.exit(64);
}
const plan = values.store === "postgres" ? planDatabaseRounds : planRetryRounds;
const plans = plan(seed, rounds, Number(values.messages))
  .filter(({ number }) => values.only === undefined || values.only.includes(String(number)));
console.log(`At most ${plans.length} rounds of the retry processor, --seed ${seed}`);
const results = await runRetryCampaign(plans, {
  parallel: Number(values.parallel),
  isOver,
  finished: (result) => console.log(retryLine(result)),
});
const sum = (of: (result: (typeof results)[number]) => number) => results.reduce((all, one) => all + of(one), 0);
const failed = results.filter(({ failures }) => failures.length > 0).length;
console.log(
  `\n${sum(({ stored }) => stored)} messages, ${sum(({ tries }) => tries)} tries, ${
    sum(({ crashes }) => crashes)
  } crashes, ` +
    `${sum(({ plan }) => plan.kills)} kills, ${
      sum(({ plan }) => plan.stops)
    } stops; ${failed} rounds failed\n--seed ${seed}`,
);
const effects = new Map<string, number>();
for (const [name, count] of results.flatMap((result) => result.effects)) {
  effects.set(name, (effects.get(name) ?? 0) + count);
}
for (const [name, count] of [...effects].sort()) console.log(`${String(count).padStart(6)}  ${name}`);
for (const result of slowRounds(results)) console.log(`SLOW, look why: ${retryLine(result)}`);
process.exit(failed === 0 ? 0 : 1);
