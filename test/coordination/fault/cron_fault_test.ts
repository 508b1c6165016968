/** The gate's dose of faults around ticks, on the binary under test; `scripts/fault cron` runs the full one. */
import { beforeAll, describe, expect, test } from "bun:test";
import { acquireTick } from "../../../src/coordination/tick/acquire_tick.ts";
import { describeBackend } from "../../support/backends.ts";
import { hasPeer } from "../../support/peers.ts";
import { cronLine, runCronCampaign } from "./cron/campaign.ts";
import { planCronRounds } from "./cron/plan.ts";
import type { CronPlan } from "./cron/plan.ts";
import type { CronResult } from "./cron/round.ts";
import { simulateTicks } from "./cron/simulation.ts";
import { faultBackends } from "./lock/plan.ts";
import { seed } from "./lock/short_dose.ts";

const rounds = 3;
const campaignMsMax = 10 * 60_000;

describe(`ticks on an injected clock [BATON_SEED=${seed}]`, () => {
  test.each([0, 1])(
    "no tick runs twice, or at the same time as another, or is missed silently, with %d retries",
    async (retriesMax) => {
      const { failures, counts } = await simulateTicks({ seed: seed + retriesMax, ticks: 600, retriesMax });
      expect(failures).toEqual([]);
      expect(counts["runs"]).toBeGreaterThan(200);
    },
    60_000,
  );

  test("a call that trusts its own clock is caught", async () => {
    const acquire: typeof acquireTick = (zk, name, { tick, ...rest }) =>
      acquireTick(zk, name, { ...rest, tick: { ...tick, skewMs: 2 * 3_600_000 } });
    const { failures } = await simulateTicks({ seed: 1, ticks: 600, retriesMax: 0, acquire });
    expect(failures.join("\n")).toContain("by the clock of the host");
  }, 60_000);

  test("a call that repeats a failed tick in the same second is caught", async () => {
    const acquire: typeof acquireTick = (zk, name, { tick, ...rest }) =>
      acquireTick(zk, name, { ...rest, tick: { ...tick, retryDelayMs: 0 } });
    const { failures } = await simulateTicks({ seed: 1, ticks: 600, retriesMax: 1, acquire });
    expect(failures.join("\n")).toContain("was tried again");
  }, 60_000);

  test("a call that takes every tick for another one is caught with a tick that ran twice", async () => {
    let mine = 0;
    const acquire: typeof acquireTick = (zk, name, { tick, ...rest }) => {
      const schedule = { ...tick.schedule, id: `id${mine++ % 2}` };
      return acquireTick(zk, name, { ...rest, tick: { ...tick, schedule } });
    };
    const { failures } = await simulateTicks({ seed: 1, ticks: 60, retriesMax: 0, acquire });
    expect(failures.join("\n")).toContain("with 0 retries");
  }, 60_000);
});

const plans = planCronRounds(seed, rounds, faultBackends, hasPeer("faketime"));
describe(`ticks under faults [BATON_SEED=${seed}]`, () => {
  const results = new Map<CronPlan, CronResult>();
  beforeAll(async () => {
    const possible = plans.filter(({ backend }) => backend.peer === null || hasPeer(backend.peer));
    await runCronCampaign(possible, { parallel: rounds, finished: (result) => results.set(result.plan, result) });
  }, campaignMsMax);

  for (const backend of faultBackends) {
    describeBackend(backend, () => {
      for (const plan of plans.filter((each) => each.backend === backend)) {
        test(`round ${plan.number}: ${plan.fault.name}, ${plan.childKind} child`, () => {
          const result = results.get(plan);
          if (result === undefined) throw new Error("The round was not run");
          if (result.failures.length > 0) throw new Error(cronLine(result));
        });
      }
    });
  }
});
