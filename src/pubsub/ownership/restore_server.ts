/**
 * Lets a server continue with an older copy of its store if no newer copy exists. The data that was stored after this
 * copy is lost, so an operator must accept the loss. The restore raises epochs and message IDs, so that old requests
 * and IDs are never taken for new ones. If a restore is interrupted, it must be repeated: the server does not start
 * before a restore is complete.
 */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { checkStoreIsNotEmpty } from "./empty_store_check.ts";
import { giveUpTopic, holdServerName } from "./forget_server.ts";
import { type ListedTopic, readTopicList, TopicNodes } from "./topic_nodes.ts";
import type { OwnedStore } from "../store/operations/owned_store.ts";
import type { PubsubPath } from "./pubsub_path.ts";
import { decideTopicRestore } from "./topic_decision.ts";
import { StoreGeneration } from "./store_generation.ts";

export interface RestorableTopicStore
  extends Pick<OwnedStore, "storeId" | "generation" | "raiseGeneration" | "isEmpty" | "copiesOf"> {
  /**
   * Durably raises the offset after which new message IDs start. Subscribers that had received all stored messages
   * continue at the end.
   */
  raiseBaseOffset(topic: string, baseOffset: number): Promise<void>;
}

export interface RestoreServerResult {
  readonly restored: readonly string[];
  /** The topics that are not in the copy. They start again, empty. */
  readonly lost: readonly string[];
  /** The topics that were moving to this server. They belong to their previous owner again. */
  readonly returned: readonly string[];
  /** The topics whose current owner is unknown. They stay unavailable. */
  readonly left: readonly string[];
}

/**
 * Restores the topics of server `id` from `store`. Rejects with LOCK_BUSY while the server runs or its session may
 * still be alive. Rejects with CONFIG if the store is empty although the server owns topics.
 */
export async function restoreServer(
  zk: ZooKeeper,
  path: PubsubPath,
  { id, store, onTopic = () => {} }: {
    readonly id: string;
    readonly store: RestorableTopicStore;
    /** Called after each topic in the coordination service, for a progress display. */
    readonly onTopic?: () => void;
  },
): Promise<RestoreServerResult> {
  await checkStoreIsNotEmpty(zk, path, { id, store, task: "restore" });
  return await holdServerName(zk, path, { id, what: "restore" }, async () => {
    const nodes = new TopicNodes(zk, path);
    const done: Record<keyof RestoreServerResult, string[]> = { restored: [], lost: [], returned: [], left: [] };
    for await (const listed of readTopicList(zk, path)) {
      const what = await restoreTopic(nodes, listed, { id, store });
      if (what !== "kept") done[what].push(listed.topic);
      onTopic();
    }
    // Accepts the generation last, so that the server can start only when all topics are restored.
    await new StoreGeneration(zk, path, { id, store }).accept();
    return done;
  });
}

async function restoreTopic(
  nodes: TopicNodes,
  listed: ListedTopic,
  { id, store }: { readonly id: string; readonly store: RestorableTopicStore },
): Promise<keyof RestoreServerResult | "kept"> {
  const { topic } = listed;
  for (let { node, version } = listed;;) {
    const decision = decideTopicRestore(id, node, await store.copiesOf(topic));
    if (decision.do === "keep") return "kept";
    if (decision.do === "leave") return "left";
    if (decision.do === "give up") return await giveUpTopic(nodes, { topic, node, version }, id);
    const { next } = decision;
    await store.raiseBaseOffset(topic, next.baseOffset);
    if (await nodes.write(topic, next, version) === "written") return "restored";
    await nodes.settle(topic);
    const read = await nodes.read(topic);
    if (read === null) return "kept";
    // The write was done, but its response was lost.
    if (read.node.epoch === next.epoch && read.node.baseOffset === next.baseOffset) return "restored";
    ({ node, version } = read);
  }
}
