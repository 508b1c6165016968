/** Takes away what is remembered of a pool: how items have ended, and, of one that nobody uses, its place in the tree. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import type { Clock } from "../../support/clock.ts";
import { ItemRecords } from "./item_records.ts";
import { CompletionLog } from "./completion_log.ts";
import type { PoolPath } from "./pool_path.ts";
import { isRefusal } from "../request_errors.ts";
import { retryOnConnectionLoss } from "../retry_on_connection_loss.ts";

/**
 * Of the `named` items, or with null of all. What ended well may run again from now on; what runs is not touched, and
 * what ends meanwhile may be remembered. Returns how many ends were forgotten.
 */
export async function clearPoolResults(
  zk: ZooKeeper,
  { path, named, clock }: { readonly path: PoolPath; readonly named: readonly string[] | null; readonly clock: Clock },
): Promise<number> {
  const memory = new CompletionLog(zk, path, []);
  const records = new ItemRecords(zk, { path, acl: [], clock });
  let count = 0;
  const again = (work: () => Promise<number>) =>
    retryOnConnectionLoss(zk, async () => void (count += await work()), { clock });
  await retryOnConnectionLoss(zk, () => records.clearEnded(named), { clock });
  if (named !== null) await again(() => memory.clearItems(named));
  else {
    await again(() => memory.clearAll());
    // Empty by now, or used by somebody, who keeps it. Of --total it is what the server would reap a little later, and who
    // comes meanwhile makes it again as then.
    const { queue, holders, lock } = path.total;
    const nodes = [
      ...records.nodes(),
      ...memory.shards(),
      path.ended,
      path.failed,
      path.runs,
      queue,
      holders,
      lock,
      path.own,
    ];
    for (const node of nodes) await deleteEmpty(zk, { node, clock });
  }
  return count;
}

async function deleteEmpty(
  zk: ZooKeeper,
  { node, clock }: { readonly node: string; readonly clock: Clock },
): Promise<void> {
  try {
    await retryOnConnectionLoss(zk, () => zk.delete(node, -1), { clock });
  } catch (thrown) {
    if (!isRefusal(thrown, "NONODE", "NOTEMPTY")) throw thrown;
  }
}
