/**
 * Gives up what a server has that is lost for good: its topics begin again, empty. By an operator only, who says that the
 * loss is accepted. The server's name is held meanwhile, so that it cannot come back in between; when it comes back
 * later it finds that its data is not what is named any more, and keeps it aside.
 */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { BatonError } from "../../errors.ts";
import { newGuid } from "../../support/guid.ts";
import { holdingServerName } from "./hold_server_name.ts";
import { type ListedTopic, readTopicList } from "./read_topic_list.ts";
import type { PubsubPath } from "./pubsub_path.ts";
import { forgotten, returned, type TopicNode } from "./topic_node.ts";
import { type ReadTopicNode, TopicNodes } from "./topic_nodes.ts";

export interface ForgetResult {
  /** Topics whose messages, cursors and windows are given up. */
  readonly lost: readonly string[];
  /** Topics that were on their way to the server: the one they came from has everything, and has them back. */
  readonly returned: readonly string[];
}

/** Rejects with LOCK_BUSY while the server is there, or may still answer: its session has to end first. */
export async function forgetServer(zk: ZooKeeper, path: PubsubPath, id: string): Promise<ForgetResult> {
  return await holdingServerName(zk, path, { id, what: "forget" }, async () => {
    const nodes = new TopicNodes(zk, path);
    const lost: string[] = [];
    const back: string[] = [];
    for await (const listed of readTopicList(zk, path)) {
      const done = await giveUpTopic(nodes, listed, id);
      if (done === "lost") lost.push(listed.topic);
      if (done === "returned") back.push(listed.topic);
    }
    return { lost, returned: back };
  });
}

/** Until it is no longer this server's, or begins again. */
export async function giveUpTopic(
  nodes: TopicNodes,
  listed: ListedTopic,
  id: string,
): Promise<"lost" | "returned" | "kept"> {
  const { topic } = listed;
  let read: ReadTopicNode | null = listed;
  for (;;) {
    // What is new has nothing to lose: a proxy gives it to another server by itself.
    if (read === null || read.node.owner !== id || read.node.state === "new") return "kept";
    const back: TopicNode | null = returned(read.node);
    const next: TopicNode | null = back ?? forgotten(read.node, newGuid());
    if (next === null) {
      throw new BatonError("BAD_DATA", `"${topic}" was given up too often: no sequence numbers are left for it`);
    }
    const outcome = await nodes.write(topic, next, read.version);
    if (outcome !== "written") {
      // Its receiver took it, or the answer was lost.
      await nodes.sync(topic);
      read = await nodes.read(topic);
      if (read === null || read.node.incarnation !== next.incarnation || read.node.epoch !== next.epoch) continue;
    }
    await nodes.uncount(topic, id);
    return back === null ? "lost" : "returned";
  }
}
