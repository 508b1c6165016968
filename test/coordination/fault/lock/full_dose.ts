/** The full dose of a fault test, from the command line: how many rounds, on what, from which seed. */
import process from "node:process";
import { batonCommand } from "../../../support/keeper_server.ts";
import { doseArguments } from "../../../support/dose_arguments.ts";
import { runCampaign } from "./campaign.ts";
import type { Wrapper } from "./contender.ts";
import { figures, roundLine } from "./figures.ts";
import { faultBackends, planRounds } from "./plan.ts";
import { sessionTimeoutMs } from "./wrappers.ts";

/** Ends the process: with 0 when all is as it must be. */
export async function fullDose(wrapped: Wrapper): Promise<never> {
  const { rounds, isOver, seed, parallel, backends, isWanted, rest } = doseArguments(faultBackends);
  // Another program instead of baton, to see what the harness says of it: it gets NAME -- CMD… appended.
  const wrapper: Wrapper = rest.length === 0
    ? wrapped
    : { name: rest.join(" "), command: (lock, child) => [...rest, lock, "--", ...child] };
  const plans = planRounds(seed, rounds, backends, wrapper.faults).filter(isWanted);

  const shown = rest.length === 0 ? batonCommand().join(" ") : wrapper.name;
  console.log(`At most ${plans.length} rounds of "${shown}", T = ${sessionTimeoutMs} ms, --seed ${seed}`);
  const campaign = await runCampaign(plans, {
    wrapper,
    sessionTimeoutMs,
    parallel,
    isOver,
    finished: (result) => console.log(roundLine(result)),
  });
  console.log(`\n${figures(campaign)}\n--seed ${seed}`);
  process.exit(campaign.results.every(({ failures }) => failures.length === 0) ? 0 : 1);
}
