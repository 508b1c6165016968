/** Reads pools and their items as rows. */
import type { PoolDetails, PoolHolderRow, PoolItemRow, PoolRow } from "../../base/rows/pool_row.ts";
import type { CoordinationObjectRow } from "../../base/rows/object_row.ts";
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import type { LockHolderStatus } from "../lock/lock_status.ts";
import { mapInBatches } from "../nodes/node_requests.ts";
import { type ItemResult, type ItemResultCounts, ItemResultStore } from "../pool/item_result_store.ts";
import { poolPath } from "../pool/pool_path.ts";
import type { PoolStatus } from "../pool/read_pool_status.ts";

/** The most failed items of a pool that are read. */
const failuresMax = 100;
const batchSize = 10;

/** Counts the results of a pool's items, and reads the newest failures. */
export function countPoolResults(zk: ZooKeeper, name: string, root: string): Promise<ItemResultCounts> {
  return new ItemResultStore(zk, poolPath(name, { root }), []).countResults(failuresMax);
}

export async function readPoolRows(
  zk: ZooKeeper,
  pools: readonly CoordinationObjectRow[],
  root: string,
): Promise<PoolRow[]> {
  return await mapInBatches(pools, batchSize, async (pool) => {
    const { done, failed } = await countPoolResults(zk, pool.name, root);
    return { ...pool, done, failed };
  });
}

export function countPoolItems(items: readonly Pick<PoolItemRow, "state">[]): PoolDetails["counts"] {
  const counts = { free: 0, running: 0, done: 0, failed: 0 };
  for (const { state } of items) counts[state]++;
  return counts;
}

export function poolDetails({ component, componentHolder, items, conflictingRun }: PoolStatus): PoolDetails {
  return {
    component,
    component_holder: componentHolder && holderRow(componentHolder),
    conflicting_run: conflictingRun && {
      host: conflictingRun.info.host,
      pid: conflictingRun.info.pid,
      user: conflictingRun.info.user,
      command: conflictingRun.info.argv0,
      item_path: conflictingRun.templates.item,
      component_path: conflictingRun.templates.component,
    },
    counts: countPoolItems(items),
    items: items.map(({ item, state, holder, lastResult }) => ({
      item,
      state,
      holder: holder && holderRow(holder),
      last_result: lastResult && itemResultRow(lastResult),
    })),
  };
}

export function itemResultRow(
  { result, what, by, atMs, untilMs }: ItemResult,
): NonNullable<PoolItemRow["last_result"]> {
  return { result, what, by, at: new Date(atMs).toISOString(), until: new Date(untilMs).toISOString() };
}

function holderRow({ holderId: id, host, pid, user, argv0, sinceMs, fencingToken }: LockHolderStatus): PoolHolderRow {
  return {
    id,
    host,
    pid,
    user,
    command: argv0,
    since: sinceMs === 0 ? null : new Date(sinceMs).toISOString(),
    fencing_token: fencingToken.toString(),
  };
}
