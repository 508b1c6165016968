/**
 * By hand, with BATON_DOSE=full: 1,000 items of 50 ms over ten processes, beside xargs. Prints the ratio; on a machine
 * that is busy with other things it says little, as ten processes with their guards want the processors, and xargs does
 * not.
 */
import { expect, test } from "bun:test";
import { BatonSession } from "../../support/baton_session.ts";
import { isFullDose } from "../../support/dose.ts";
import { measurePool } from "../../support/pool_throughput.ts";

test.skipIf(!isFullDose)("1,000 items over ten processes, beside xargs -P 10", async () => {
  await using session = new BatonSession({ BATON_SERVERS: "embedded" });
  const ratios: number[] = [];
  for (let round = 0; round < 5; round++) {
    const load = { items: 1000, processes: 10, seconds: 0.05 };
    const { xargsMs, poolMs } = await measurePool(session, `round${round}`, load);
    ratios.push(xargsMs / poolMs);
    console.log(`xargs ${Math.round(xargsMs)} ms, baton pool ${Math.round(poolMs)} ms`);
  }
  expect(ratios.length).toBe(5);
  console.log(`ratio of throughputs, median: ${ratios.sort((a, b) => a - b)[2]?.toFixed(2)}`);
}, 600_000);
