/**
 * The gate's dose of faults around servers that share a database; `scripts/fault pubsub --store postgres` runs the full
 * one.
 */
import { expect, test } from "bun:test";
import { keeper } from "../../support/backends.ts";
import { describeWithPeer } from "../../support/peers.ts";
import { runPubsubCampaign } from "./pubsub/campaign.ts";
import { sessionTimeoutMs, shortCrew } from "./pubsub/dose.ts";
import { verdictText } from "./pubsub/judge.ts";
import { testSeed } from "../../support/random.ts";

const seed = testSeed();

describeWithPeer("postgres", "servers that share a database which is disturbed", () => {
  test(`what was answered OK is there once, whatever happens [BATON_SEED=${seed}]`, async () => {
    const { verdict, failures } = await runPubsubCampaign({
      ...{ backend: keeper, seed, sessionTimeoutMs, ...shortCrew },
      ...{ messages: 200, faults: 6, rate: 400, lanes: 3, hasStorageFaults: false },
      // With every second seed one server has a data directory, and topics move between both.
      database: { replication: "synchronous", isOnSmallDisk: false, isMixed: seed % 2 === 0, isShort: true },
      say: () => {},
    });
    expect([...failures, ...verdict.violations.map(() => verdictText(verdict))]).toEqual([]);
    expect(verdict).toMatchObject({ lost: 0, duplicated: 0, unexpected: 0, named: 0 });
  }, 300_000);
});
