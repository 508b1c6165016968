/**
 * A store without topics under the name of a server that has some: a folder that was mistyped, a disk that is not mounted.
 * It is not served. What would be put into new topics there would be away as soon as the right folder is back. Nor does
 * anything go on from it: all topics would be given up.
 */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { BatonError } from "../../errors.ts";
import { counted } from "../../support/text.ts";
import { nullIfNoNode } from "../../coordination/request_errors.ts";
import { readTopicList } from "./read_topic_list.ts";
import type { PubsubPath } from "./pubsub_path.ts";

/** Rejects with CONFIG when nothing is `stored` of what belongs to the server `id`, and something does. */
export async function checkEmptiness(
  zk: ZooKeeper,
  path: PubsubPath,
  { id, stored, task }: {
    readonly id: string;
    readonly stored: readonly string[];
    readonly task: "serve" | "go on from";
  },
): Promise<void> {
  if (stored.length > 0) return;
  // What a server has is counted for it: one that has nothing is told apart by one request.
  if (((await nullIfNoNode(zk.getChildren(path.ownedBy(id))))?.children ?? []).length === 0) return;
  let missing = 0;
  // Of a new topic nobody was ever answered OK: it has no data.
  for await (const { node } of readTopicList(zk, path)) if (node.owner === id && node.state !== "new") missing++;
  if (missing === 0) return;
  const belong = counted(missing, "topic belongs", "topics belong");
  throw new BatonError(
    "CONFIG",
    `Cannot ${task} this data directory as "${id}": ${belong} to "${id}", and nothing is in it. ` +
      "Is it the right folder, and its disk mounted? If the data is lost for good, first: " +
      `baton pubsub server forget ${id} --accept-loss; where there is a backup, restore goes on from it`,
  );
}
