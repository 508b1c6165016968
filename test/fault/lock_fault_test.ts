/** The gate's dose of lock faults, on the binary under test; `scripts/fault lock` runs the full one. */
import { beforeAll, describe, expect, test } from "bun:test";
import process from "node:process";
import { describeBackend, keeper } from "../support/backends.ts";
import { hasPeer } from "../support/peers.ts";
import { runCampaign } from "./lock/campaign.ts";
import { roundLine } from "./lock/figures.ts";
import { faults } from "./lock/faults.ts";
import type { RoundResult } from "./lock/judge.ts";
import { faultBackends, planRounds, type RoundPlan } from "./lock/plan.ts";
import { batonWrapper, sessionTimeoutMs, unwatchedWrapper } from "./lock/wrappers.ts";

const seed = Number(process.env["BATON_SEED"] ?? (Math.random() * 0x7fffffff) | 0);
const plans = planRounds(seed, 30);
/** Together they take about a minute on two processors: most of a round is waiting for T to pass, its start is work. */
const parallel = 7;
const campaignMsMax = 5 * 60_000;

describe(`a lock under faults [BATON_SEED=${seed}]`, () => {
  const results = new Map<RoundPlan, RoundResult>();
  beforeAll(async () => {
    const possible = plans.filter(({ backend }) => backend.peer === null || hasPeer(backend.peer));
    await runCampaign(possible, {
      wrapper: batonWrapper,
      sessionTimeoutMs,
      parallel,
      finished: (result) => results.set(result.plan, result),
    });
  }, campaignMsMax);

  for (const backend of faultBackends) {
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

test("a wrapper that never watches its session is caught with two holders at once", async () => {
  const fault = faults.find(({ name }) => name === "black hole");
  if (fault === undefined) throw new Error("There is no black hole any more");
  const plan: RoundPlan = { number: 0, backend: keeper, fault, childKind: "plain", seed };
  const { results } = await runCampaign([plan], { wrapper: unwatchedWrapper, sessionTimeoutMs, parallel: 1 });
  expect(results[0]?.overlapMs).toBeGreaterThan(500);
  expect(results[0]?.failures.join("\n")).toContain("two holders at once");
}, 120_000);
