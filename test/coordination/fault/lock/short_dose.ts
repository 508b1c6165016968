/** The gate's dose of faults, on the binary under test; `scripts/fault NAME` runs the full one. */
import { beforeAll, describe, test } from "bun:test";
import { type Backend, describeBackend } from "../../../support/backends.ts";
import { hasPeer } from "../../../support/peers.ts";
import { runCampaign } from "./campaign.ts";
import type { Wrapper } from "./contender.ts";
import { roundLine } from "./figures.ts";
import type { RoundResult } from "./judge.ts";
import { faultBackends, planRounds, type RoundPlan } from "./plan.ts";
import { sessionTimeoutMs } from "./wrappers.ts";
import { testSeed } from "../../../support/random.ts";

export const seed = testSeed();
/** Most of a round is waiting for T to pass, its start is work: two processors are busy with so many. */
const parallel = 7;
const campaignMsMax = 10 * 60_000;

export function describeShortDose(
  what: string,
  wrapper: Wrapper,
  rounds: number,
  backends: readonly Backend[] = faultBackends,
): void {
  const plans = planRounds(seed, rounds, backends, wrapper.faults);
  describe(`${what} under faults [BATON_SEED=${seed}]`, () => {
    const results = new Map<RoundPlan, RoundResult>();
    beforeAll(async () => {
      const possible = plans.filter(({ backend }) => backend.peer === null || hasPeer(backend.peer));
      await runCampaign(possible, {
        wrapper,
        sessionTimeoutMs,
        parallel,
        finished: (result) => results.set(result.plan, result),
      });
    }, campaignMsMax);

    for (const backend of backends) {
      describeBackend(backend, () => {
        for (const plan of plans.filter((each) => each.backend === backend)) {
          test(`round ${plan.number}: ${plan.fault.name}, ${plan.childKind} child`, () => {
            const result = results.get(plan);
            if (result === undefined) throw new Error("The round was not run");
            if (result.failures.length > 0) throw new Error(roundLine(result));
          });
        }
      });
    }
  });
}
