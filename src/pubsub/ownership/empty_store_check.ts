/**
 * Protects against an empty data directory, which is usually a mistyped path or an unmounted disk. A server that owns
 * topics must not start with an empty store: when the right folder is back, messages in the empty store would be lost.
 * A restore from an empty store would give up all topics.
 */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError } from "../../base/errors.ts";
import { countWithNoun } from "../../base/support/text.ts";
import { nullIfNoNode } from "../../coordination/nodes/node_requests.ts";
import type { OwnedStore } from "../store/operations/owned_store.ts";
import { readTopicList } from "./topic_nodes.ts";
import type { PubsubPath } from "./pubsub_path.ts";

/** Rejects with CONFIG if the store of server `id` is empty although topics belong to this server. */
export async function checkStoreIsNotEmpty(
  zk: ZooKeeper,
  path: PubsubPath,
  { id, store, task }: {
    readonly id: string;
    readonly store: Pick<OwnedStore, "isEmpty">;
    readonly task: "serve" | "restore";
  },
): Promise<void> {
  if (!await store.isEmpty()) return;
  // If the server owns no topics, one request is enough, because its topics are counted under `owners/<id>`.
  if (((await nullIfNoNode(zk.getChildren(path.ownedTopics(id))))?.children ?? []).length === 0) return;
  let missing = 0;
  // New topics do not count: they have no data, because no request for them was ever answered with OK.
  for await (const { node } of readTopicList(zk, path)) if (node.owner === id && node.state !== "new") missing++;
  if (missing === 0) return;
  const belong = countWithNoun(missing, "topic belongs", "topics belong");
  throw new BatonError(
    "CONFIG",
    `Cannot ${task} this data directory as "${id}": it is empty, but ${belong} to "${id}". ` +
      "Check the path, and whether its disk is mounted. If the data is lost, restore a backup; if there is none: " +
      `baton pubsub server forget ${id} --accept-loss`,
  );
}
