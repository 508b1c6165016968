/** What is to be done about a topic that only the store has to do. */
import { BatonError } from "../../errors.ts";
import type { StoredTopic } from "../store/owned_store.ts";
import type { Tenure } from "./owned_topic.ts";
import type { TopicAction } from "./topic_decision.ts";
import type { TopicNode } from "./topic_node.ts";

/** Does nothing for another action than `create`, `activate`, `drop`, `discard` and `set aside`. */
export async function changeStore(
  tenure: Tenure,
  topic: string,
  { action, node, stored }: {
    readonly action: TopicAction;
    readonly node: TopicNode | undefined;
    readonly stored: StoredTopic;
  },
): Promise<void> {
  const { store, nodes, id } = tenure;
  if (action.do === "create" && node !== undefined) {
    await store.create(topic, { incarnation: node.incarnation, baseOffset: node.baseOffset, epoch: node.epoch });
  } else if (action.do === "activate" && node !== undefined) {
    await store.activate(topic, node.epoch, action.what);
  } else if (action.do === "drop") {
    await store.drop(topic, action.epoch);
    await nodes.uncount(topic, id);
  } else if (action.do === "discard") {
    await store.discard(topic);
  } else if (action.do === "set aside") {
    await store.setAside(topic);
    tenure.onProblem(
      new BatonError(
        "CONFIG",
        `What this server has stored of "${topic}" (epoch ${stored.copy?.epoch}) is not what its node names: while ` +
          "the server was away it was given up, or begun again after the coordination service had lost its data; it is " +
          "kept aside",
      ),
    );
  }
}

export function missingTopic(topic: string, node: TopicNode | undefined, id: string): BatonError {
  return new BatonError(
    "CONFIG",
    `"${topic}" belongs to this server, "${id}", at epoch ${node?.epoch}, and is not in its store: it stays unavailable ` +
      "until the store is back, or until it is given up",
  );
}
