/**
 * What a topic's node says, and the only ways in which it may change. Every change but the first is a compare-and-set on
 * the version that was read; each is checked in test/model. Pure: names no path and asks no server.
 */

/** Whose sealed copy holds a topic's content, at which epoch. */
export interface ContentSource {
  readonly owner: string;
  readonly epoch: number;
}

/**
 * - new: assigned, and no OK was ever answered for this content: the owner begins with nothing
 * - moving: the content is the sealed copy of `source`, which the owner has as well; nobody answers OK yet
 * - stored: the owner has it, at this epoch, and may answer
 * - sealed: as found by its owner when the node itself had been lost: somebody else may have gone on already
 */
export type TopicNodeState = "new" | "moving" | "stored" | "sealed";

export interface TopicNode {
  /** The server's id; "" as long as nobody has it. */
  readonly owner: string;
  /** Grows with every change of owner, from 1. */
  readonly epoch: number;
  readonly state: TopicNodeState;
  /** Names the content: random, and another one when a topic begins again. */
  readonly incarnation: string;
  /** Every sequence number of this content is greater: none is used again after its predecessor was given up. */
  readonly baseOffset: number;
  /** Of a topic that is moving; null otherwise. */
  readonly source: ContentSource | null;
}

/** More messages than one content will ever have; 511 contents of one topic fit into the exact integers. */
export const idsPerIncarnation = 2 ** 44;

/** A topic that nobody had. */
export function assigned(owner: string, incarnation: string): TopicNode {
  return { owner, epoch: 1, state: "new", incarnation, baseOffset: 0, source: null };
}

/** To another server, as long as it is new. */
export function reassigned(node: TopicNode, owner: string): TopicNode {
  return { ...node, owner, epoch: node.epoch + 1 };
}

/** What the owner writes before its first OK in an epoch. */
export function confirmed(node: TopicNode): TopicNode {
  return { ...node, state: "stored", source: null };
}

/** What a receiver writes once it has durably staged the sealed content. */
export function taken(node: TopicNode, owner: string): TopicNode {
  const source = { owner: node.owner, epoch: node.epoch };
  return { ...node, owner, epoch: node.epoch + 1, state: "moving", source };
}

/** What the old owner writes instead, to have it back: then no receiver can take it any more. */
export function takenBack(node: TopicNode): TopicNode {
  return taken(node, node.owner);
}

/** By an operator who accepts that the owner's content is lost. Null when no sequence numbers are left. */
export function forgotten(node: TopicNode, incarnation: string): TopicNode | null {
  const baseOffset = node.baseOffset + idsPerIncarnation;
  if (!Number.isSafeInteger(baseOffset + idsPerIncarnation)) return null;
  return { owner: "", epoch: node.epoch + 1, state: "new", incarnation, baseOffset, source: null };
}

/**
 * What an operator writes for an owner whose store was put back: the copy of that epoch is opened again at the next one. What
 * was stored since is lost, and the numbers that it had are not used again. Null when no sequence numbers are left.
 */
export function restored(node: TopicNode, copyEpoch: number): TopicNode | null {
  const baseOffset = node.baseOffset + idsPerIncarnation;
  if (!Number.isSafeInteger(baseOffset + idsPerIncarnation)) return null;
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

/** Of a topic that was moving to a server that is lost, by an operator: its source still has everything. */
export function returned(node: TopicNode): TopicNode | null {
  if (node.state !== "moving" || node.source === null || node.source.owner === node.owner) return null;
  return { ...node, owner: node.source.owner, epoch: node.epoch + 1 };
}
