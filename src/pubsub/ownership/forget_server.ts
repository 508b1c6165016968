/**
 * Gives up the topics of a server that has permanently lost its data. The topics start again, empty. An operator must
 * accept the loss. This code holds the server's name while it works, so that the server cannot start. If the server
 * starts later, it sets its data aside, because the data does not match the topics' nodes.
 */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { BatonError } from "../../base/errors.ts";
import { newGuid } from "../../base/support/guid.ts";
import {
  createNodeWithParents,
  type ListedTopic,
  readTopicList,
  TopicNodes,
  type VersionedTopicNode,
} from "./topic_nodes.ts";
import type { PubsubPath } from "./pubsub_path.ts";
import { chooseTopicSuccessor } from "./topic_router.ts";
import { type TopicNode, topicNodeAfterForget, topicNodeAfterReturn, topicNodeAfterTakeover } from "./topic_node.ts";
import { isServerRefusal } from "../../coordination/nodes/node_requests.ts";
import { type ProcessAnnouncement, readAnnouncement, readAnnouncements } from "./process_announcement.ts";
import { encodeJson } from "../../base/support/json_fields.ts";

export interface ForgetServerResult {
  /** The topics whose messages, cursors and windows are lost. */
  readonly lost: readonly string[];
  /**
   * The topics that were moving to this server. The previous owner still has all data of these topics, and owns them
   * again.
   */
  readonly returned: readonly string[];
  /** The topics of a shared store. Another server of this store owns them now, and nothing is lost. */
  readonly takenOver: readonly string[];
}

/** Gives up a server's topics. Rejects with LOCK_BUSY while the server runs or its session may still be alive. */
export async function forgetServer(zk: ZooKeeper, path: PubsubPath, id: string): Promise<ForgetServerResult> {
  return await holdServerName(zk, path, { id, what: "forget" }, async () => {
    const nodes = new TopicNodes(zk, path);
    const lost: string[] = [];
    const back: string[] = [];
    const takenOver: string[] = [];
    const { known: servers, later } = await readAnnouncements(zk, path.servers);
    const [error] = later.values();
    if (error !== undefined) throw error; // it may share the store, so that nothing is lost
    for await (const listed of readTopicList(zk, path)) {
      if (await giveToSuccessor(nodes, listed, { id, servers })) {
        takenOver.push(listed.topic);
        continue;
      }
      const done = await giveUpTopic(nodes, listed, id);
      if (done === "lost") lost.push(listed.topic);
      if (done === "returned") back.push(listed.topic);
    }
    return { lost, returned: back, takenOver };
  });
}

/**
 * Gives a topic of a shared store to the server that would take over the topic anyway. Returns false if there is no
 * such server or no need.
 */
async function giveToSuccessor(
  nodes: TopicNodes,
  { topic, node, version }: ListedTopic,
  { id, servers }: { readonly id: string; readonly servers: readonly ProcessAnnouncement[] },
): Promise<boolean> {
  if (node.store === undefined || node.owner !== id || node.state === "new") return false;
  const taking = servers.filter(({ store, isDraining }) => store === node.store && isDraining !== true);
  const to = chooseTopicSuccessor(topic, taking.map((server) => server.id));
  if (to === null || await nodes.write(topic, topicNodeAfterTakeover(node, to), version) !== "written") return false;
  await nodes.countForOwner(topic, to);
  await nodes.uncountForOwner(topic, id);
  return true;
}

/** Gives up one topic. Repeats until the topic no longer belongs to server `id`, or has a new incarnation. */
export async function giveUpTopic(
  nodes: TopicNodes,
  listed: ListedTopic,
  id: string,
): Promise<"lost" | "returned" | "kept"> {
  const { topic } = listed;
  let read: VersionedTopicNode | null = listed;
  for (;;) {
    // A new topic has no data, and a proxy will assign it to another server.
    if (read === null || read.node.owner !== id || read.node.state === "new") return "kept";
    const back: TopicNode | null = topicNodeAfterReturn(read.node);
    // Other servers of the shared store take over such a topic.
    if (read.node.store !== undefined && back === null) return "kept";
    const next: TopicNode | null = back ?? topicNodeAfterForget(read.node, newGuid());
    if (next === null) {
      throw new BatonError("BAD_DATA", `Cannot give up "${topic}": no message ids are left for another incarnation`);
    }
    const outcome = await nodes.write(topic, next, read.version);
    if (outcome !== "written") {
      await nodes.settle(topic);
      read = await nodes.read(topic);
      if (read === null || read.node.incarnation !== next.incarnation || read.node.epoch !== next.epoch) continue;
    }
    await nodes.uncountForOwner(topic, id);
    return back === null ? "lost" : "returned";
  }
}

/**
 * Holds the server's name while `work` runs, so that the server cannot start. Rejects with LOCK_BUSY while the server
 * runs or its session may still be alive.
 */
export async function holdServerName<T>(
  zk: ZooKeeper,
  path: PubsubPath,
  { id, what }: { readonly id: string; readonly what: "forget" | "restore" },
  work: () => Promise<T>,
): Promise<T> {
  const name = path.server(id);
  const data = encodeJson({ layout: 1, operation: what, server: id });
  try {
    await createNodeWithParents(zk, name, data, { mode: "ephemeral" });
  } catch (thrown) {
    if (!isServerRefusal(thrown, "NODEEXISTS")) throw thrown;
    const at = await readAnnouncement(zk, name);
    throw new BatonError(
      "LOCK_BUSY",
      `Cannot ${what} the server "${id}": ` +
        (at === null
          ? "another operator's command is running for it"
          : `it is running at ${at.endpoint}, or its session has not ended yet; ` +
            "stop it and wait for the session timeout"),
      { cause: thrown },
    );
  }
  try {
    return await work();
  } finally {
    await zk.delete(name, -1).catch(() => {}); // the node ends with the session at the latest
  }
}
