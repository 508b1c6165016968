/**
 * The same items through ten pools and through `xargs -P 10`, one after the other: what one says is the other's
 * measure.
 */
import type { BatonSession } from "./baton_session.ts";

export interface PoolLoad {
  readonly items: number;
  readonly processes: number;
  /** Of one item; with a fraction, because the names of the items are their seconds. */
  readonly seconds: number;
}

export interface PoolMeasure {
  readonly xargsMs: number;
  readonly poolMs: number;
}

/** Each item has run once when this resolves; throws where that is not so. `name` is one that no pool has had. */
export async function measurePool(
  session: BatonSession,
  name: string,
  { items, processes, seconds }: PoolLoad,
): Promise<PoolMeasure> {
  await session.run(`seq -f '${seconds}%06.0f' ${items} > list; "$baton" lock warm -- true`);
  const work = "sleep {}";
  const xargs = await session.run(`xargs -P ${processes} -I{} ${work} < list`);
  const pool = `exec "$baton" pool ${name} -w 60s --items @list -j 1 --done-ttl 1h -- ${work}`;
  const startMs = performance.now();
  const ended = await Promise.all(Array.from({ length: processes }, () => session.run(pool)));
  const poolMs = performance.now() - startMs;
  const wrong = ended.find(({ code }) => code !== 0 && code !== 75);
  if (wrong !== undefined) throw new Error(`A pool ended with ${wrong.code ?? wrong.signal}: ${wrong.stderr}`);
  const status = JSON.parse((await session.run(`"$baton" pool status ${name} --json`)).stdout) as {
    counts: Record<string, number>;
  };
  if (status.counts["done"] !== items) throw new Error(`Not ${items} items are done: ${JSON.stringify(status.counts)}`);
  return { xargsMs: xargs.tookMs, poolMs };
}
