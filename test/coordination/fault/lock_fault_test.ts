/** The gate's dose of lock faults, on the binary under test; `scripts/fault lock` runs the full one. */
import { expect, test } from "bun:test";
import { keeper } from "../../support/backends.ts";
import { runsNightly } from "../../support/tier.ts";
import { runCampaign } from "./lock/campaign.ts";
import { faults } from "./lock/faults.ts";
import type { RoundPlan } from "./lock/plan.ts";
import { describeShortDose, seed } from "./lock/short_dose.ts";
import { batonWrapper, sessionTimeoutMs, unwatchedWrapper } from "./lock/wrappers.ts";

/** All of them take about a minute on two processors; half of them run every day. */
describeShortDose("a lock", batonWrapper, runsNightly ? 30 : 15);

test("a wrapper that never watches its session is caught with two holders at once", async () => {
  const fault = faults.find(({ name }) => name === "black hole");
  if (fault === undefined) throw new Error("There is no black hole any more");
  const plan: RoundPlan = { number: 0, backend: keeper, fault, childKind: "plain", seed };
  const { results } = await runCampaign([plan], { wrapper: unwatchedWrapper, sessionTimeoutMs, parallel: 1 });
  expect(results[0]?.overlapMs).toBeGreaterThan(500);
  expect(results[0]?.failures.join("\n")).toContain("two holders at once");
}, 120_000);
