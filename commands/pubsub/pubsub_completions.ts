/** Completes names of topics in a shell. */
import type { ProductCompletions } from "../product.ts";
import type { ZooKeeper } from "../../src/protocols/zookeeper/zookeeper.ts";
import { PubsubPath } from "../../src/pubsub/ownership/pubsub_path.ts";

export const pubsubCompletions: ProductCompletions = { topics: { list: listTopicNames } };

/**
 * Lists the names of topics, for completion in the shell. Reads only the names of the topics' nodes, in two round
 * trips. Returns the names in no particular order. Omits long names, because their nodes are named by a hash. Rejects
 * with NONODE if there are no topics.
 */
async function listTopicNames(zk: Pick<ZooKeeper, "getChildren">, root: string): Promise<string[]> {
  const { topics } = new PubsubPath(root);
  const { children: shards } = await zk.getChildren(topics);
  const lists = await Promise.all(shards.map((shard) => zk.getChildren(`${topics}/${shard}`)));
  return lists.flatMap(({ children }) => children).filter((name) => !name.startsWith("~")).map(decodeURIComponent);
}
