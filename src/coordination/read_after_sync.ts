/** Reads from any server and sees every write that was made before. */
import type { ZooKeeper } from "../zookeeper/zookeeper.ts";

/** Reads after a lost response: only a sync makes sure that the next server has seen the write. Both go in one packet. */
export async function readAfterSync<T>(zk: ZooKeeper, path: string, read: () => Promise<T>): Promise<T> {
  const syncing = zk.sync(path);
  const reading = read();
  reading.catch(() => {}); // the sync's failure is reported first
  await syncing;
  return await reading;
}
