/** Benchmark: short items through ten pools on one keeper, compared with `xargs -P 10`, which takes no locks. */
import { BatonSession } from "../../test/support/baton_session.ts";
import { measurePool, type PoolMeasure } from "../../test/support/pool_throughput.ts";
import { alignedTable, formatFigure, summarizeMeasurements } from "./statistics.ts";

const load = { items: 1000, processes: 10, seconds: 0.05 };

/** Returns a table over the rounds. The ratio is computed within each round. */
export async function poolThroughput(rounds: number): Promise<string> {
  await using session = new BatonSession({ BATON_SERVERS: "embedded" });
  const measures: PoolMeasure[] = [];
  for (let round = 0; round < rounds; round++) measures.push(await measurePool(session, `round${round}`, load));
  const row = (name: string, of: (measure: PoolMeasure) => number) => {
    const { min, p50, max } = summarizeMeasurements(measures.map(of));
    return [name, formatFigure(min), formatFigure(p50), formatFigure(max)];
  };
  const { items, processes, seconds } = load;
  return alignedTable([
    [`${items} items of ${seconds} s over ${processes}`, "min", "p50", "max"],
    row("xargs, s", ({ xargsMs }) => xargsMs / 1000),
    row("baton pool -j 1 --done-ttl, s", ({ poolMs }) => poolMs / 1000),
    row("throughput ÷ xargs", ({ xargsMs, poolMs }) => xargsMs / poolMs),
  ]);
}
