/**
 * Goes on from an older copy of a server's store, because there is no newer one: what came after it is lost. By an operator only,
 * who says that the loss is accepted. Epochs and numbers are raised, so that nothing of the lost time is taken for
 * something of the time to come. Interrupted, it is done again; until it is done the server does not start.
 */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { checkEmptiness } from "./check_emptiness.ts";
import { giveUpTopic } from "./forget_server.ts";
import { holdingServerName } from "./hold_server_name.ts";
import { type ListedTopic, readTopicList } from "./read_topic_list.ts";
import type { OwnedStore } from "../store/owned_store.ts";
import type { PubsubPath } from "./pubsub_path.ts";
import { decideRestore } from "./restore_decision.ts";
import { StoreGeneration } from "./store_generation.ts";
import { TopicNodes } from "./topic_nodes.ts";

export interface RestorableStore
  extends Pick<OwnedStore, "storeId" | "generation" | "raiseGeneration" | "topics" | "copiesOf"> {
  /** Messages are numbered from behind `baseOffset` on, durably; who had all that is there has had everything up to it. */
  continueBehind(topic: string, baseOffset: number): Promise<void>;
}

export interface RestoreResult {
  /** Topics that are as they were when the copy was made. */
  readonly restored: readonly string[];
  /** Topics that are not in the copy: they begin again, empty. */
  readonly lost: readonly string[];
  /** Topics that were on their way to the server, and are back where they came from. */
  readonly returned: readonly string[];
  /** Topics of which nobody can say who has them: they stay unavailable. */
  readonly left: readonly string[];
}

/** Rejects with LOCK_BUSY while the server is there, or may still answer; with CONFIG where nothing is stored of what it has. */
export async function restoreServer(
  zk: ZooKeeper,
  path: PubsubPath,
  { id, store }: { readonly id: string; readonly store: RestorableStore },
): Promise<RestoreResult> {
  await checkEmptiness(zk, path, { id, stored: await store.topics(), task: "go on from" });
  return await holdingServerName(zk, path, { id, what: "restore" }, async () => {
    const nodes = new TopicNodes(zk, path);
    const done: Record<keyof RestoreResult, string[]> = { restored: [], lost: [], returned: [], left: [] };
    for await (const listed of readTopicList(zk, path)) {
      const what = await restoreTopic(nodes, listed, { id, store });
      if (what !== "kept") done[what].push(listed.topic);
    }
    // The last thing of all: the server starts when everything before it is done.
    await new StoreGeneration(zk, path, { id, store }).accept();
    return done;
  });
}

async function restoreTopic(
  nodes: TopicNodes,
  listed: ListedTopic,
  { id, store }: { readonly id: string; readonly store: RestorableStore },
): Promise<keyof RestoreResult | "kept"> {
  const { topic } = listed;
  for (let { node, version } = listed;;) {
    const decision = decideRestore(id, node, await store.copiesOf(topic));
    if (decision.do === "keep") return "kept";
    if (decision.do === "leave") return "left";
    if (decision.do === "give up") return await giveUpTopic(nodes, { topic, node, version }, id);
    const { next } = decision;
    await store.continueBehind(topic, next.baseOffset);
    if (await nodes.write(topic, next, version) === "written") return "restored";
    await nodes.sync(topic);
    const read = await nodes.read(topic);
    if (read === null) return "kept";
    if (read.node.epoch === next.epoch && read.node.baseOffset === next.baseOffset) return "restored"; // the answer was lost
    ({ node, version } = read);
  }
}
