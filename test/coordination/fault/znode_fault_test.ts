/**
 * The gate's dose: what clients are answered about the same nodes is linearizable, under faults; `scripts/fault znode`
 * runs more.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { verdictLine } from "../../checker/verdict_line.ts";
import { backends, describeBackend } from "../../support/backends.ts";
import { runZnodeRound } from "./znode/round.ts";
import { testSeed } from "../../support/random.ts";

setDefaultTimeout(120_000);
const seed = testSeed();

for (const backend of backends) {
  describeBackend(backend, () => {
    test(`changes and reads of the same nodes are linearizable under faults [BATON_SEED=${seed}]`, async () => {
      const { verdict, surprises, states, operations } = await runZnodeRound({ backend, seed, workMs: 4000 });
      console.log(`${verdictLine(verdict)}; ${states.length} faults`);
      expect([...verdict.violated, ...verdict.undecided].map(({ why }) => why)).toEqual([]);
      expect(surprises).toEqual([]);
      expect(operations.filter(({ outcome }) => outcome === "ok").length).toBeGreaterThan(100);
      expect(operations.filter(({ outcome }) => outcome === "unknown").length).toBeGreaterThan(0);
    });
  });
}
