/**
 * The full dose:
 * `scripts/fault cron [clock|processes|services] [--rounds N | --minutes M] [--seed S] [--parallel P] [--backend NAME]
 * [--only ROUND]`.
 * `clock`: 10,000 ticks on an injected clock; `processes`: rounds of ten ticks on real processes and servers, 300 ticks
 * by default; `services`: baton cron on three hosts with 40 jobs over ten minutes, on each kind of server.
 */
import process from "node:process";
import { hasPeer } from "../../../support/peers.ts";
import { doseArguments } from "../../../support/dose_arguments.ts";
import { faultBackends } from "../lock/plan.ts";
import { ObserverProcess } from "../lock/observer_process.ts";
import { sessionTimeoutMs } from "../lock/wrappers.ts";
import { countsText, cronLine, runCronCampaign } from "./campaign.ts";
import { planCronRounds } from "./plan.ts";
import { runServices } from "./services.ts";
import { simulateTicks } from "./simulation.ts";

const { rounds, isOver, seed, parallel, backends, isWanted, rest } = doseArguments(faultBackends);
const hasClocks = hasPeer("faketime");
if (!hasClocks) console.error("MISSING PEER: libfaketime; the clocks of processes and servers are not stepped");
const failures: string[] = [];
const [only] = rest;
const isWantedPart = (part: string) => only === undefined || only === part;
for (const retriesMax of isWantedPart("clock") ? [0, 1] : []) {
  const result = await simulateTicks({ seed: seed + retriesMax, ticks: 5000, retriesMax });
  failures.push(...result.failures);
  const head = result.failures.length === 0 ? "ok  " : "FAIL";
  console.log(`${head} 5000 ticks on an injected clock, ${retriesMax} retries: ${countsText(result.counts)}`);
  for (const failure of result.failures.slice(0, 20)) console.log(`       ${failure}`);
}
const plans = planCronRounds(seed, isWantedPart("processes") ? rounds : 0, backends, hasClocks).filter(isWanted);
console.log(`At most ${plans.length} rounds of ten ticks, T = ${sessionTimeoutMs} ms, --seed ${seed}`);
const results = await runCronCampaign(plans, {
  parallel,
  isOver,
  finished: (result) => console.log(cronLine(result)),
});
const runs = results.reduce((sum, result) => sum + result.runs, 0);
const failed = results.filter((result) => result.failures.length > 0).length;
console.log(`${results.length} rounds, ${runs} runs, ${failed} failed`);
if (isWantedPart("services")) {
  using observer = new ObserverProcess();
  for (const [index, backend] of backends.entries()) {
    const happened = (what: string) => console.log(`     ${backend.name}: ${what}`);
    const result = await runServices({
      seed: seed + index,
      backend,
      jobs: 40,
      minutes: 8,
      hasClocks,
      observer,
      happened,
    });
    failures.push(...result.failures);
    const { ticks, recorded, breaches } = result;
    const head = `${result.failures.length === 0 ? "ok  " : "FAIL"} services on ${backend.name}`;
    console.log(`${head}: ${result.runs} runs of ${ticks} ticks; ${countsText(recorded)}; breaches ${breaches}`);
    for (const failure of result.failures.slice(0, 20)) console.log(`       ${failure}`);
  }
}
console.log(`--seed ${seed}`);
process.exit(failures.length === 0 && failed === 0 ? 0 : 1);
