/**
 * The gate's dose of faults around publish/subscribe, on the binary under test; `scripts/fault pubsub` runs the full
 * one.
 */
import { expect, test } from "bun:test";
import { keeper } from "../../support/backends.ts";
import { hasPeer } from "../../support/peers.ts";
import { runPubsubCampaign } from "./pubsub/campaign.ts";
import { sessionTimeoutMs, shortCrew } from "./pubsub/dose.ts";
import { verdictText } from "./pubsub/judge.ts";
import { testSeed } from "../../support/random.ts";

const seed = testSeed();

test(`what was answered OK is there once, in order, for everybody, whatever happens [BATON_SEED=${seed}]`, async () => {
  const { verdict, failures } = await runPubsubCampaign({
    ...{ backend: keeper, seed, sessionTimeoutMs, ...shortCrew },
    ...{ messages: 200, faults: 6, rate: 400, lanes: 3, hasStorageFaults: hasPeer("cc") },
    say: () => {},
  });
  expect([...failures, ...verdict.violations.map(() => verdictText(verdict))]).toEqual([]);
  expect(verdict).toMatchObject({ lost: 0, duplicated: 0, unexpected: 0 });
}, 300_000);
