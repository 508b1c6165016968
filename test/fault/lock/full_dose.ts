/** The full dose of a fault test, from the command line: how many rounds, on what, from which seed. */
import { randomInt } from "node:crypto";
import process from "node:process";
import { parseArgs } from "node:util";
import { hasPeer } from "../../support/peers.ts";
import { batonCommand } from "../../support/keeper_server.ts";
import { runCampaign } from "./campaign.ts";
import type { Wrapper } from "./contender.ts";
import { figures, roundLine } from "./figures.ts";
import { faultBackends, planRounds } from "./plan.ts";
import { sessionTimeoutMs } from "./wrappers.ts";

/** Ends the process: with 0 when all is as it must be. */
export async function fullDose(wrapped: Wrapper): Promise<never> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
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
    .filter(({ peer, name }) => {
      if (peer === null || hasPeer(peer)) return true;
      console.error(`MISSING PEER: ${name}; its rounds are left out`);
      return false;
    });
  if (backends.length === 0) {
    console.error(`No backend to run on. There are: ${faultBackends.map(({ name }) => name).join("; ")}`);
    process.exit(64);
  }
  // Another program instead of baton, to see what the harness says of it: it gets NAME -- CMD… appended.
  const wrapper: Wrapper = positionals.length === 0
    ? wrapped
    : { name: positionals.join(" "), command: (lock, child) => [...positionals, lock, "--", ...child] };
  const seed = Number(values.seed);
  const plans = planRounds(seed, Number(values.rounds), backends)
    .filter(({ number }) => values.only === undefined || values.only.includes(String(number)));

  const shown = positionals.length === 0 ? batonCommand().join(" ") : wrapper.name;
  console.log(`${plans.length} rounds of "${shown}", T = ${sessionTimeoutMs} ms, --seed ${seed}`);
  const campaign = await runCampaign(plans, {
    wrapper,
    sessionTimeoutMs,
    parallel: Number(values.parallel),
    finished: (result) => console.log(roundLine(result)),
  });
  console.log(`\n${figures(campaign)}\n--seed ${seed}`);
  process.exit(campaign.results.every(({ failures }) => failures.length === 0) ? 0 : 1);
}
