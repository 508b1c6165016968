/** Reads all topics with their nodes, shard by shard, for `server ls`, `forget` and `restore`. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { nullIfNoNode } from "../../coordination/request_errors.ts";
import type { PubsubPath } from "./pubsub_path.ts";
import type { TopicNode } from "./topic_node.ts";
import { parseTopicNode } from "./topic_node_data.ts";

export interface ListedTopic {
  readonly topic: string;
  readonly node: TopicNode;
  readonly version: number;
}

/** Reads that are sent in one write. */
const batchSize = 100;

/**
 * Yields topics as they are read, not as one snapshot: topics created meanwhile may be missing. Throws CONFIG for a
 * node in an unknown format.
 */
export async function* readTopicList(zk: ZooKeeper, path: PubsubPath): AsyncGenerator<ListedTopic, void, void> {
  const shards = path.shards();
  for (let at = 0; at < shards.length; at += batchSize) {
    const batch = shards.slice(at, at + batchSize);
    const lists = await Promise.all(batch.map((shard) => nullIfNoNode(zk.getChildren(shard))));
    for (const [index, list] of lists.entries()) {
      yield* listShard(zk, batch[index] as string, list?.children ?? []);
    }
  }
}

async function* listShard(
  zk: ZooKeeper,
  shard: string,
  names: readonly string[],
): AsyncGenerator<ListedTopic, void, void> {
  for (let at = 0; at < names.length; at += batchSize) {
    const paths = names.slice(at, at + batchSize).map((name) => `${shard}/${name}`);
    const found = await Promise.all(paths.map((path) => nullIfNoNode(zk.getData(path))));
    for (const [index, one] of found.entries()) {
      if (one === null) continue;
      const { topic, ...node } = parseTopicNode(one.data, paths[index] as string);
      yield { topic, node, version: one.stat.version };
    }
  }
}
