/**
 * The data of a topic's node and its only allowed changes. Every change except the first is a compare-and-set on the
 * version that was read. The model in test/pubsub/model checks each. Pure.
 */

/** The server and epoch whose sealed copy holds the content. */
export interface TopicContentSource {
  readonly owner: string;
  readonly epoch: number;
  /** The id of the shared store that has it; without one: the owner's own store. */
  readonly store?: string;
}

/**
 * - new: assigned; no request for this content was ever answered OK, and the owner starts with an empty topic
 * - moving: the content is the sealed copy of `source`, and the owner has it as well; no server answers OK yet
 * - stored: the owner has the content at this epoch and may answer
 * - sealed: the owner found its sealed copy after the node was lost; another server may already own the content
 */
export type TopicNodeState = "new" | "moving" | "stored" | "sealed";

/** A topic in the coordination service: its owner, its epoch, and which content it has. */
export interface TopicNode {
  /** The server's id; empty while no server has the topic. */
  readonly owner: string;
  /** Starts at 1 and grows with every change of owner. */
  readonly epoch: number;
  readonly state: TopicNodeState;
  /** Identifies the content: random, and new when a topic starts again. */
  readonly incarnation: string;
  /** All message ids of this content are greater. Ids of an earlier, abandoned content are never used again. */
  readonly baseOffset: number;
  /** Only for a moving topic; otherwise null. */
  readonly source: TopicContentSource | null;
  /**
   * The id of the shared store that has the topic, whichever of its servers owns it. Without one: the owner's own
   * store.
   */
  readonly store?: string;
}

/** More messages than one content ever has. A topic can have 511 incarnations within exact integers. */
export const messageIdsPerIncarnation = 2 ** 44;

/** Assigns a topic for the first time. `store`: the shared store of the server, if it has one. */
export function assignedTopicNode(owner: string, incarnation: string, store?: string): TopicNode {
  return inStore({ owner, epoch: 1, state: "new", incarnation, baseOffset: 0, source: null }, store);
}

/** Assigns a new topic to another server. */
export function reassignedTopicNode(node: TopicNode, owner: string, store?: string): TopicNode {
  return inStore({ ...node, owner, epoch: node.epoch + 1 }, store);
}

function inStore({ store: _, ...node }: TopicNode, store: string | undefined): TopicNode {
  return store === undefined ? node : { ...node, store };
}

/**
 * Written by a server of a shared store that finds other content under the name of a new topic, or content of a later
 * epoch: the tree was lost, and this is what the topic had.
 */
export function claimedTopicNode(
  node: TopicNode,
  content: Pick<TopicNode, "incarnation" | "baseOffset" | "epoch">,
  { owner, store }: Pick<TopicNode, "owner" | "store">,
): TopicNode {
  const { incarnation, baseOffset } = content;
  const epoch = Math.max(node.epoch, content.epoch) + 1;
  return inStore({ owner, incarnation, baseOffset, epoch, state: "stored", source: null }, store);
}

/** Written by the owner before its first OK in an epoch. */
export function confirmedTopicNode(node: TopicNode): TopicNode {
  return { ...node, state: "stored", source: null };
}

/**
 * Written by a receiver when it has durably staged the sealed content. `store`: the shared store of the receiver, if it
 * has one.
 */
export function takenTopicNode(node: TopicNode, owner: string, store?: string): TopicNode {
  const source = { owner: node.owner, epoch: node.epoch, ...(node.store === undefined ? {} : { store: node.store }) };
  return inStore({ ...node, owner, epoch: node.epoch + 1, state: "moving", source }, store);
}

/**
 * Written by the old owner to take the topic back; then no receiver can take it. The rows of a shared store are just
 * opened again.
 */
export function takenBackTopicNode(node: TopicNode): TopicNode {
  return node.store === undefined ? takenTopicNode(node, node.owner) : takenOverTopicNode(node, node.owner);
}

/**
 * Written when the owner is gone, for another server of the same shared store. The rows stay where they are: the new
 * owner opens them at this epoch.
 */
export function takenOverTopicNode(node: TopicNode, owner: string): TopicNode {
  return { ...node, owner, epoch: node.epoch + 1 };
}

/** Written for an operator who accepts that the owner's content is lost. Null if no message ids are left. */
export function forgottenTopicNode(node: TopicNode, incarnation: string): TopicNode | null {
  const baseOffset = node.baseOffset + messageIdsPerIncarnation;
  if (!Number.isSafeInteger(baseOffset + messageIdsPerIncarnation)) return null;
  return { owner: "", epoch: node.epoch + 1, state: "new", incarnation, baseOffset, source: null };
}

/**
 * Written for an operator whose store was restored: the copy of that epoch is opened at the next epoch. Everything
 * stored later is lost, and its message ids are not used again. Null if no message ids are left.
 */
export function restoredTopicNode(node: TopicNode, copyEpoch: number): TopicNode | null {
  const baseOffset = node.baseOffset + messageIdsPerIncarnation;
  if (!Number.isSafeInteger(baseOffset + messageIdsPerIncarnation)) return null;
  const { owner, incarnation } = node;
  return {
    owner,
    incarnation,
    baseOffset,
    epoch: node.epoch + 1,
    state: "moving",
    source: { owner, epoch: copyEpoch },
  };
}

/**
 * Written when the content of a moving topic is lost at its receiver: its source still has all data. Null if there is
 * no source.
 */
export function returnedTopicNode(node: TopicNode): TopicNode | null {
  if (node.state !== "moving" || node.source === null || node.source.owner === node.owner) return null;
  const { owner, store } = node.source;
  const back = inStore({ ...node, owner, epoch: node.epoch + 1 }, store);
  // The rows of a shared store are opened by its server at this epoch, or by the one that takes the topic over.
  return store === undefined ? back : { ...back, state: "stored", source: null };
}
