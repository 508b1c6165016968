/**
 * The gate's dose of faults around the retry processor, on the binary under test; `scripts/fault retry` runs the full
 * one.
 */
import { expect, test } from "bun:test";
import { requireBinary } from "../../support/runtimes.ts";
import { hasPeer } from "../../support/peers.ts";
import { planDatabaseRounds, planRetryRounds, retryLine } from "./retry/campaign.ts";
import { runRetryRound } from "./retry/round.ts";
import { testSeed } from "../../support/random.ts";

const seed = testSeed();

// The third is on a disk that is full for a while, where one can be mounted; the sixth is by commands.
const plans = planRetryRounds(seed, 6, 1000).map((plan) => ({ ...plan, fullDisks: Math.min(plan.fullDisks, 1) }));
const inFolders = plans.filter(({ number, fullDisks }) => [0, 1, 5].includes(number) || fullDisks > 0);
const inDatabases = hasPeer("postgres") ? planDatabaseRounds(seed, 1, 400) : [];
for (const plan of [...inFolders, ...inDatabases]) {
  test(
    `round ${plan.number}: ${plan.messages} messages by ${plan.kind} ${
      plan.fullDisks > 0
        ? "on a full disk"
        : plan.database === null
        ? "under kill -9"
        : "in PostgreSQL, which is disturbed"
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
