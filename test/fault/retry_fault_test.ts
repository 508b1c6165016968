/** The gate's dose of faults around the retry processor, on the binary under test; `scripts/fault retry` runs the full one. */
import { expect, test } from "bun:test";
import process from "node:process";
import { requireBinary } from "../support/runtimes.ts";
import { planRetryRounds, retryLine } from "./retry/campaign.ts";
import { runRetryRound } from "./retry/round.ts";

const seed = Number(process.env["BATON_SEED"] ?? Math.floor(Math.random() * 2 ** 31));

// The third is on a disk that is full for a while, where one can be mounted; the sixth is by commands, with an election.
const plans = planRetryRounds(seed, 6, 1000).map((plan) => ({ ...plan, fullDisks: Math.min(plan.fullDisks, 1) }));
for (const plan of plans.filter(({ number, fullDisks }) => [0, 1, 5].includes(number) || fullDisks > 0)) {
  test(
    `round ${plan.number}: ${plan.messages} messages by ${plan.kind}${plan.elects ? ", elected" : ""} ${
      plan.fullDisks > 0 ? "on a full disk" : "under kill -9"
    } [BATON_SEED=${seed}]`,
    async () => {
      requireBinary();
      const result = await runRetryRound(plan);
      console.log(retryLine(result));
      expect(result.failures).toEqual([]);
      expect(result.tries).toBeGreaterThan(0);
    },
    120_000,
  );
}
