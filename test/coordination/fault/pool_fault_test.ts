/** The gate's dose of faults around pools, on the binary under test; `scripts/fault pool` runs the full one. */
import { beforeAll, describe, expect, test } from "bun:test";
import { describeBackend, keeper } from "../../support/backends.ts";
import { hasPeer } from "../../support/peers.ts";
import { faults } from "./lock/faults.ts";
import { faultBackends } from "./lock/plan.ts";
import { seed } from "./lock/short_dose.ts";
import { poolLine, runPoolCampaign } from "./pool/campaign.ts";
import type { PoolResult } from "./pool/judge.ts";
import { planPoolRounds, type PoolPlan } from "./pool/plan.ts";
import { hastyPool, type PoolWrapper, unwatchedPool } from "./pool/wrappers.ts";

const rounds = 6;
/** Most of a round is waiting for T to pass; three pools with their guards are work. */
const parallel = 4;
const campaignMsMax = 10 * 60_000;

const plans = planPoolRounds(seed, rounds, faultBackends);
describe(`pools under faults [BATON_SEED=${seed}]`, () => {
  const results = new Map<PoolPlan, PoolResult>();
  let unwatched: PoolResult | undefined;
  let hasty: PoolResult | undefined;
  beforeAll(async () => {
    const possible = plans.filter(({ backend }) => backend.peer === null || hasPeer(backend.peer));
    const controlled = runControls().then((results) => [unwatched, hasty] = results); // which mostly wait
    await runPoolCampaign(possible, { parallel, finished: (result) => results.set(result.plan, result) });
    await controlled;
  }, campaignMsMax);

  for (const backend of faultBackends) {
    describeBackend(backend, () => {
      for (const plan of plans.filter((each) => each.backend === backend)) {
        test(`round ${plan.number}: ${plan.fault.name}, ${plan.childKind} child, -j ${plan.jobs}`, () => {
          const result = results.get(plan);
          if (result === undefined) throw new Error("The round was not run");
          if (result.failures.length > 0) throw new Error(poolLine(result));
        });
      }
    });
  }

  test("a pool that never watches its session is caught with an item that runs twice at once", () => {
    expect(unwatched?.failures.join("\n")).toContain("item1 ran twice at once");
    expect(unwatched?.overlapMs).toBeGreaterThan(500);
  });

  test("a loop over a list that it never doubts is caught with an item that it runs again", () => {
    expect(hasty?.failures.join("\n")).toContain("was run again by a list from before its end");
  });
});

/** One after the other: they are no measure of a busy machine. */
async function runControls(): Promise<(PoolResult | undefined)[]> {
  return [
    // Longer than T: the lock is given away while the run goes on.
    await runControl("black hole", unwatchedPool, { items: 1, seconds: 8, querySeconds: null }),
    await runControl("cut, again and again", hastyPool, { items: 6, seconds: 0.2, querySeconds: 0.2 }),
  ];
}

async function runControl(
  faultName: string,
  wrapper: PoolWrapper,
  { items, seconds, querySeconds }: {
    readonly items: number;
    readonly seconds: number;
    readonly querySeconds: number | null;
  },
): Promise<PoolResult | undefined> {
  const fault = faults.find(({ name }) => name === faultName);
  if (fault === undefined) throw new Error(`There is no fault "${faultName}" any more`);
  const round = { number: 0, backend: keeper, fault, childKind: "plain", seed } as const;
  const plan: PoolPlan = { ...round, items, jobs: 1, isBounded: false, isSplit: false, querySeconds };
  const [result] = await runPoolCampaign([plan], { wrapper, runSeconds: () => seconds, parallel: 1 });
  return result;
}
