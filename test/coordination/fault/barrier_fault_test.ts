/** The gate's dose of faults around a barrier, on the binary under test; `scripts/fault barrier` runs the full one. */
import { beforeAll, describe, test } from "bun:test";
import { describeBackend } from "../../support/backends.ts";
import { hasPeer } from "../../support/peers.ts";
import { barrierLine, runBarrierCampaign } from "./barrier/campaign.ts";
import type { BarrierResult } from "./barrier/judge.ts";
import { type BarrierPlan, phaseOf, planBarrierRounds } from "./barrier/plan.ts";
import { faultBackends } from "./lock/plan.ts";
import { testSeed } from "../../support/random.ts";

const seed = testSeed();
const rounds = 12;
/** Most of a round is waiting for T to pass. */
const parallel = 6;
const campaignMsMax = 10 * 60_000;

const plans = planBarrierRounds(seed, rounds, faultBackends);
describe(`a barrier under faults [BATON_SEED=${seed}]`, () => {
  const results = new Map<BarrierPlan, BarrierResult>();
  beforeAll(async () => {
    const possible = plans.filter(({ backend }) => backend.peer === null || hasPeer(backend.peer));
    await runBarrierCampaign(possible, { parallel, finished: (result) => results.set(result.plan, result) });
  }, campaignMsMax);

  for (const backend of faultBackends) {
    describeBackend(backend, () => {
      for (const plan of plans.filter((each) => each.backend === backend)) {
        test(`round ${plan.number}: ${plan.fault.name}, ${phaseOf(plan)}`, () => {
          const result = results.get(plan);
          if (result === undefined) throw new Error("The round was not run");
          if (result.failures.length > 0) throw new Error(barrierLine(result));
        });
      }
    });
  }
});
