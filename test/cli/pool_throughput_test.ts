/**
 * By hand, with BATON_DOSE=full: 1,000 items of 50 ms over ten processes, beside xargs. Prints the ratio; on a machine
 * that is busy with other things it says little, as ten processes with their guards want the processors, and xargs does not.
 */
import { expect, test } from "bun:test";
import { BatonSession } from "../support/baton_session.ts";
import { isFullDose } from "../support/dose.ts";

test.skipIf(!isFullDose)("1,000 items over ten processes, beside xargs -P 10", async () => {
  await using session = new BatonSession({ BATON_SERVERS: "embedded" });
  await session.run('seq 1000 > list; "$baton" lock warm -- true');
  const ratios: number[] = [];
  for (let round = 0; round < 5; round++) {
    const xargs = await session.run("xargs -P 10 -I{} sleep 0.05 < list");
    const one = `"$baton" pool round${round} -w 60s --items @list --loop -j 1 --done-ttl 1h -- sleep 0.05`;
    const startMs = performance.now();
    const ended = await Promise.all(Array.from({ length: 10 }, () => session.run(one)));
    const tookMs = performance.now() - startMs;
    for (const { code } of ended) expect([0, 75]).toContain(code ?? -1);
    const status = JSON.parse((await session.run(`"$baton" pool status round${round} --json`)).stdout) as {
      counts: Record<string, number>;
    };
    expect(status.counts).toEqual({ free: 0, running: 0, done: 1000, failed: 0 });
    ratios.push(xargs.tookMs / tookMs);
    console.log(`xargs ${Math.round(xargs.tookMs)} ms, baton pool ${Math.round(tookMs)} ms`);
  }
  console.log(`ratio of throughputs, median: ${ratios.sort((a, b) => a - b)[2]?.toFixed(2)}`);
}, 600_000);
