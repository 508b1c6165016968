/** Clears the results of a pool, and deletes the pool's nodes if no run uses them. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import type { Clock } from "../../base/support/clock.ts";
import { PoolItemRecords } from "./item_records.ts";
import { ItemResultStore } from "./item_result_store.ts";
import type { PoolPath } from "./pool_path.ts";
import { nullIfRefused, readAfterSync, retryOnConnectionLoss } from "../nodes/node_requests.ts";

/**
 * Clears the results of the `named` items, or of all items if `named` is null, so that completed items may run again.
 * Running items are not affected, and may store their results meanwhile. Returns the number of cleared results.
 */
export async function clearPoolResults(
  zk: ZooKeeper,
  { path, named, clock }: { readonly path: PoolPath; readonly named: readonly string[] | null; readonly clock: Clock },
): Promise<number> {
  const memory = new ItemResultStore(zk, path, []);
  const records = new PoolItemRecords(zk, { path, acl: [], clock });
  let count = 0;
  const again = (work: () => Promise<number>) =>
    retryOnConnectionLoss(zk, async () => void (count += await work()), { clock });
  // A server that lags behind may still show items as running although their run has ended.
  const clearEnded = () => readAfterSync(zk, path.own, () => records.clearEnded(named));
  await retryOnConnectionLoss(zk, clearEnded, { clock });
  if (named !== null) await again(() => memory.clearItems(named));
  else {
    await again(() => memory.clearAll());
    // Nodes in use stay, because they are not empty. A new run creates the nodes of --total again.
    const { queue, holders, lock } = path.total;
    const nodes = [
      ...records.nodePaths(),
      ...memory.shardPaths(),
      path.ended,
      path.failed,
      path.runs,
      path.shared,
      queue,
      holders,
      lock,
      path.own,
    ];
    for (const node of nodes) {
      const deleting = retryOnConnectionLoss(zk, () => zk.delete(node, -1), { clock });
      await nullIfRefused(deleting, "NONODE", "NOTEMPTY");
    }
  }
  return count;
}
