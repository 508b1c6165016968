/** Lists the names of topics, for completion: reads only the names of their nodes, in two round trips. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { PubsubPath } from "./pubsub_path.ts";

/**
 * Returns the names in no particular order. Skips long names, because a hash names their nodes. Rejects with NONODE if
 * no topic was ever created.
 */
export async function listTopicNames(zk: Pick<ZooKeeper, "getChildren">, root: string): Promise<string[]> {
  const { topics } = new PubsubPath(root);
  const { children: shards } = await zk.getChildren(topics);
  const lists = await Promise.all(shards.map((shard) => zk.getChildren(`${topics}/${shard}`)));
  return lists.flatMap(({ children }) => children).filter((name) => !name.startsWith("~")).map(decodeURIComponent);
}
