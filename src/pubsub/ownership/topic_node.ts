/**
 * The data of a topic's node and all allowed changes of this data. Every change except the creation requires that the
 * node still has the version that was read. The model in test/pubsub/model checks each change. Pure.
 */

/** The server that has the content as a sealed copy, and the epoch of that copy. */
export interface TopicContentSource {
  readonly owner: string;
  readonly epoch: number;
  /** The ID of the shared store that has the content; undefined if the owner's own store has it. */
  readonly store?: string;
}

/**
 * - new: assigned; no request for this content was ever answered with OK, and the owner starts with an empty topic
 * - moving: the content is the sealed copy of `source`, and the owner also has it; no server answers with OK yet
 * - stored: the owner has the content at this epoch and may answer
 * - sealed: the owner found its sealed copy after the node was lost; another server may already own the content
 */
export type TopicNodeState = "new" | "moving" | "stored" | "sealed";

/** A topic in the coordination service: its owner, its epoch, and the content that it has. */
export interface TopicNode {
  /** The owner's server ID; empty while no server has the topic. */
  readonly owner: string;
  /** A number that starts at 1 and increases with every change of owner. */
  readonly epoch: number;
  readonly state: TopicNodeState;
  /** A random value that identifies the content. A topic that starts again gets a new value. */
  readonly incarnation: string;
  /**
   * All message IDs of this content are greater than this number. IDs of earlier content that was given up are thus
   * never used again.
   */
  readonly baseOffset: number;
  /** Where the content of a moving topic comes from; null for other topics. */
  readonly source: TopicContentSource | null;
  /**
   * The ID of the shared store that has the topic, independent of the owner; undefined if the owner's own store has it.
   */
  readonly store?: string;
}

/**
 * The distance between the first IDs of two incarnations. No incarnation uses up this many IDs. The IDs of 511
 * incarnations are exact integers.
 */
export const messageIdsPerIncarnation = 2 ** 44;

/** Assigns a topic to a server for the first time. `store` is the server's shared store, if there is one. */
export function topicNodeAfterAssignment(owner: string, incarnation: string, store?: string): TopicNode {
  return inStore({ owner, epoch: 1, state: "new", incarnation, baseOffset: 0, source: null }, store);
}

export function topicNodeAfterReassignment(node: TopicNode, owner: string, store?: string): TopicNode {
  return inStore({ ...node, owner, epoch: node.epoch + 1 }, store);
}

function inStore({ store: _, ...node }: TopicNode, store: string | undefined): TopicNode {
  return store === undefined ? node : { ...node, store };
}

/**
 * Returns the node that a server of a shared store writes when it finds other content for a new topic, or content of a
 * later epoch. The topic had this content before the tree was lost.
 */
export function topicNodeAfterClaim(
  node: TopicNode,
  content: Pick<TopicNode, "incarnation" | "baseOffset" | "epoch">,
  { owner, store }: Pick<TopicNode, "owner" | "store">,
): TopicNode {
  const { incarnation, baseOffset } = content;
  const epoch = Math.max(node.epoch, content.epoch) + 1;
  return inStore({ owner, incarnation, baseOffset, epoch, state: "stored", source: null }, store);
}

/** Returns the node that the owner writes before it first answers with OK in an epoch. */
export function topicNodeAfterConfirmation(node: TopicNode): TopicNode {
  return { ...node, state: "stored", source: null };
}

/**
 * Returns the node that is written when a receiver has durably staged the sealed content. `store` is the receiver's
 * shared store; undefined if it has none.
 */
export function topicNodeAfterTransfer(node: TopicNode, owner: string, store?: string): TopicNode {
  const source = { owner: node.owner, epoch: node.epoch, ...(node.store === undefined ? {} : { store: node.store }) };
  return inStore({ ...node, owner, epoch: node.epoch + 1, state: "moving", source }, store);
}

/**
 * Returns the node that the old owner writes to take back the topic, so that no receiver can take it. Rows of a shared
 * store stay where they are.
 */
export function topicNodeAfterTakeBack(node: TopicNode): TopicNode {
  return node.store === undefined ? topicNodeAfterTransfer(node, node.owner) : topicNodeAfterTakeover(node, node.owner);
}

/**
 * Returns the node that another server of the same shared store writes to take over from an owner that is gone. The
 * rows stay where they are, and the new owner opens them at this epoch.
 */
export function topicNodeAfterTakeover(node: TopicNode, owner: string): TopicNode {
  return { ...node, owner, epoch: node.epoch + 1 };
}

/**
 * Returns the node that is written for an operator who accepts that the owner's content is lost; null if no message IDs
 * are left.
 */
export function topicNodeAfterForget(node: TopicNode, incarnation: string): TopicNode | null {
  const baseOffset = node.baseOffset + messageIdsPerIncarnation;
  if (!Number.isSafeInteger(baseOffset + messageIdsPerIncarnation)) return null;
  return { owner: "", epoch: node.epoch + 1, state: "new", incarnation, baseOffset, source: null };
}

/**
 * Returns the node that is written when an operator has restored the owner's store. The owner opens the copy of epoch
 * `copyEpoch` at the next epoch. Messages that were stored after that copy are lost, and their IDs are not used again.
 * Returns null if no message IDs are left.
 */
export function topicNodeAfterRestore(node: TopicNode, copyEpoch: number): TopicNode | null {
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
 * Returns the node that is written when the receiver of a moving topic has lost the topic, and the source still has all
 * data; null if there is no source.
 */
export function topicNodeAfterReturn(node: TopicNode): TopicNode | null {
  if (node.state !== "moving" || node.source === null || node.source.owner === node.owner) return null;
  const { owner, store } = node.source;
  const back = inStore({ ...node, owner, epoch: node.epoch + 1 }, store);
  // The owner, or the server that takes over the topic, opens the rows of a shared store at this epoch.
  return store === undefined ? back : { ...back, state: "stored", source: null };
}
