/** Executes what was decided about a topic in the store of a server. */
import { BatonError } from "../../base/errors.ts";
import type { TopicCopies } from "../store/operations/owned_store.ts";
import type { OwnershipContext } from "./ownership_context.ts";
import type { TopicAction } from "./topic_decision.ts";
import type { TopicNode } from "./topic_node.ts";

/**
 * Executes the actions that only concern the store: `create`, `activate`, `release`, `drop`, `discard` and `set aside`.
 * Other actions do nothing.
 */
export async function changeStore(
  context: Pick<OwnershipContext, "store" | "nodes" | "id" | "onProblem">,
  topic: string,
  { action, node, stored }: {
    readonly action: TopicAction;
    readonly node: TopicNode | undefined;
    readonly stored: TopicCopies;
  },
): Promise<void> {
  const { store, nodes, id } = context;
  if (action.do === "create" && node !== undefined) {
    await store.create(topic, { incarnation: node.incarnation, baseOffset: node.baseOffset, epoch: node.epoch });
  } else if (action.do === "activate" && node !== undefined) {
    await store.activate(topic, node.epoch, action.what, node.incarnation);
  } else if (action.do === "release") {
    await store.release(topic);
  } else if (action.do === "drop") {
    await store.drop(topic, action.epoch, node?.incarnation);
    await nodes.uncountForOwner(topic, id);
  } else if (action.do === "discard" && stored.staged !== null) {
    await store.discard(topic, stored.staged);
  } else if (action.do === "set aside") {
    await store.setAside(topic);
    context.onProblem(
      new BatonError(
        "CONFIG",
        `The stored data of topic "${topic}" (epoch ${stored.copy?.epoch}) was set aside, ` +
          "because its node names other data: the topic was given up, or started again after " +
          "the coordination service had lost its data",
      ),
    );
  }
}

export function missingTopicError(topic: string, node: TopicNode | undefined, id: string): BatonError {
  return new BatonError(
    "CONFIG",
    `Topic "${topic}" is unavailable: it belongs to this server, "${id}", at epoch ${node?.epoch}, but is not in its ` +
      "store. Put the data back, or give the topic up: baton pubsub topic delete --accept-loss",
  );
}
