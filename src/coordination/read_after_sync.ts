/** A look at the tree that sees what was done before, whichever server it is asked of. */
import type { ZooKeeper } from "../zookeeper/zookeeper.ts";

/** After an answer that never came: only a sync makes sure that the next server has seen what was done. Both go in one write. */
export async function readAfterSync<T>(zk: ZooKeeper, path: string, look: () => Promise<T>): Promise<T> {
  const syncing = zk.sync(path);
  const looking = look();
  looking.catch(() => {}); // the sync's failure is told first
  await syncing;
  return await looking;
}
