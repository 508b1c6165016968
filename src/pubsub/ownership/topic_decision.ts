/**
 * Decides what a server does about a topic, from the stored copies and the topic's node as last read. This is the whole
 * protocol, except for the choice of the moment when an owner starts a handoff. Further functions decide about attempts
 * of a handoff, transfers, restores and deletions. Pure, so that the model in test/pubsub/model can call these
 * functions with nodes of any age.
 */
import type { StagedCopy, TopicCopies, TopicCopy } from "../store/operations/owned_store.ts";
import {
  type TopicNode,
  topicNodeAfterClaim,
  topicNodeAfterConfirmation,
  topicNodeAfterRestore,
  topicNodeAfterReturn,
  topicNodeAfterTakeover,
  topicNodeAfterTransfer,
} from "./topic_node.ts";
import type { TopicTransferReply } from "./transfer_channel.ts";

export interface TopicDecisionFacts extends Pick<TopicCopies, "copy" | "staged" | "unopened"> {
  readonly me: string;
  /** The topic's node; null if it does not exist. */
  readonly node: TopicNode | null;
  /**
   * The ID of the store that this server shares with other servers, and whether the topic's owner is running.
   * `isOwnerThere` is also true for topics of other stores. Null if only this server uses its store.
   */
  readonly shared: { readonly store: string; readonly isOwnerThere: boolean } | null;
}

export type TopicAction =
  /** The server must answer requests while the lease allows it. */
  | { readonly do: "serve" }
  /** Send the sealed copy to its receiver. If `mayTakeBack` is true, the server may also take back the topic. */
  | { readonly do: "hand off"; readonly to: string; readonly mayTakeBack: boolean }
  | { readonly do: "register"; readonly next: TopicNode }
  /** Replace the node's data if the node still has the version that was read. */
  | {
    readonly do: "write";
    readonly next: TopicNode;
    readonly why: "confirm" | "take" | "claim" | "take over" | "return";
  }
  /** Store an empty topic. */
  | { readonly do: "create" }
  /** Open the server's own sealed copy, or the staged copy, at the node's epoch. */
  | { readonly do: "activate"; readonly what: "copy" | "staged" }
  /** Remove the copy of an earlier epoch, because the content of this epoch is durable in another store. */
  | { readonly do: "drop"; readonly epoch: number }
  /** Close the content of a shared store, because another server owns it now. */
  | { readonly do: "release" }
  /** Remove the staged copy, because the topic continues without it. */
  | { readonly do: "discard" }
  /** Set the copy aside, because the node names other content. */
  | { readonly do: "set aside" }
  /** Read the node again after a sync, because it is older than the stored data. */
  | { readonly do: "read again" }
  /** The server owns the topic but has no data for it. The topic is unavailable until an operator decides. */
  | { readonly do: "missing" }
  | { readonly do: "none" };

const none: TopicAction = { do: "none" };

export function decideTopic(facts: TopicDecisionFacts): TopicAction {
  const { me, node, copy, staged, shared } = facts;
  if (shared !== null) return decideShared(facts, shared);
  if (node === null) return copy === null ? none : { do: "register", next: nodeOfCopy(me, copy) };
  if (copy !== null && copy.incarnation !== node.incarnation) return { do: "set aside" };
  if (copy !== null && copy.epoch > node.epoch) {
    return { do: "write", next: nodeOfCopy(me, copy), why: "claim" };
  }
  return node.owner === me ? decideAsOwner(node, copy, staged) : decideAsOther(me, node, copy, staged);
}

/**
 * Decides about a topic for a server with a shared store. `copy` is content that this server has opened; `staged` and
 * `unopened` belong to all servers of the store. Only the server that opened the topic last, at the highest epoch, may
 * write; the topic's row contains its epoch.
 */
function decideShared(
  facts: TopicDecisionFacts,
  { store, isOwnerThere }: NonNullable<TopicDecisionFacts["shared"]>,
): TopicAction {
  const { me, node, copy, staged } = facts;
  if (node === null) return none;
  const content = copy ?? facts.unopened ?? null;
  if (copy !== null && copy.epoch > node.epoch) return { do: "read again" };
  if (staged !== null && !isAwaited(node, staged, store)) {
    const received = decideStaged(me, node, staged, store);
    if (received !== null) return received;
  }
  const isHere = node.store === store;
  const isOlderNode = content !== null && content.incarnation === node.incarnation && content.epoch > node.epoch;
  if (isOlderNode && content.sealedFor === null && (node.owner === me || !isHere)) {
    // The coordination service has returned to an older tree.
    return { do: "write", next: topicNodeAfterClaim(node, content, { owner: me, store }), why: "claim" };
  }
  // A topic of this server in another store is missing, because this server now uses a different store.
  if (node.owner === me) return isHere ? decideAsSharedOwner(facts, node) : { do: "missing" };
  if (!isHere) return decideLeftover(node, copy, content);
  const hasContent = node.state === "stored" || node.state === "moving";
  if (hasContent && !isOwnerThere) return { do: "write", next: topicNodeAfterTakeover(node, me), why: "take over" };
  return copy === null ? none : { do: "release" };
}

/**
 * Returns true if the node names this staged content. The owner, or the server that takes over the topic, then
 * activates the content.
 */
function isAwaited({ store, state, source, incarnation }: TopicNode, staged: StagedCopy, here: string): boolean {
  return store === here && state === "moving" && staged.incarnation === incarnation &&
    staged.owner === source?.owner && staged.epoch === source.epoch;
}

/** Decides about staged content that the node does not name. Returns null if there is nothing to do about it. */
function decideStaged(me: string, node: TopicNode, staged: StagedCopy, store: string): TopicAction | null {
  // Another server of this store may have staged the content after this node was read.
  if (staged.epoch > node.epoch) return node.store === store ? null : { do: "read again" };
  const isOfNode = staged.epoch === node.epoch && staged.incarnation === node.incarnation;
  if (!isOfNode || staged.owner !== node.owner) return { do: "discard" };
  if (node.state !== "stored" && node.state !== "sealed") return { do: "read again" };
  return { do: "write", next: topicNodeAfterTransfer(node, me, store), why: "take" };
}

/**
 * Decides about rows of a topic that another store has now. They are a second copy until the new owner has confirmed
 * the topic.
 */
function decideLeftover(node: TopicNode, copy: TopicCopy | null, content: TopicCopy | null): TopicAction {
  const isOld = content !== null && content.incarnation === node.incarnation && content.epoch < node.epoch;
  if (isOld && node.state === "stored") return { do: "drop", epoch: node.epoch };
  return copy === null || copy.sealedFor !== null ? none : { do: "release" };
}

function decideAsSharedOwner({ copy, staged, unopened, shared }: TopicDecisionFacts, node: TopicNode): TopicAction {
  const isCurrent = copy?.epoch === node.epoch && copy.incarnation === node.incarnation;
  switch (node.state) {
    case "new":
      // Content with a lower base offset was given up. If other content does not match the node, its node was lost with
      // an earlier tree.
      if (unopened && unopened.incarnation !== node.incarnation && unopened.baseOffset >= node.baseOffset) {
        // Only the receiver of sealed content knows whether the content is the newest.
        if (unopened.sealedFor !== null) return { do: "missing" };
        return { do: "write", next: topicNodeAfterClaim(node, unopened, node), why: "claim" };
      }
      if (isCurrent) return { do: "write", next: topicNodeAfterConfirmation(node), why: "confirm" };
      return copy === null ? { do: "create" } : { do: "release" };
    case "stored": {
      if (isCurrent) {
        return copy.sealedFor === null ? { do: "serve" } : { do: "hand off", to: copy.sealedFor, mayTakeBack: true };
      }
      const isMissing = unopened === null || (unopened !== undefined && unopened.incarnation !== node.incarnation);
      return isMissing ? { do: "missing" } : { do: "activate", what: "copy" };
    }
    case "moving": {
      if (isCurrent) return { do: "write", next: topicNodeAfterConfirmation(node), why: "confirm" };
      // If there are rows of a later epoch than the source's, this server or an earlier owner has already activated the
      // content.
      const content = copy ?? unopened ?? null;
      const isActivated = content?.incarnation === node.incarnation && content.epoch > (node.source?.epoch ?? 0);
      if (isActivated) return { do: "activate", what: "copy" };
      if (staged !== null && shared !== null && isAwaited(node, staged, shared.store)) {
        return { do: "activate", what: "staged" };
      }
      if (copy !== null) return { do: "release" };
      // The database has lost content that it had confirmed, but the source still has all of it.
      const back = topicNodeAfterReturn(node);
      return back === null ? { do: "missing" } : { do: "write", next: back, why: "return" };
    }
    case "sealed":
      return { do: "missing" };
  }
}

function decideAsOwner(node: TopicNode, copy: TopicCopy | null, staged: StagedCopy | null): TopicAction {
  const isCurrent = copy?.epoch === node.epoch;
  switch (node.state) {
    case "stored":
    case "sealed":
      if (!isCurrent) return { do: "missing" };
      if (copy.sealedFor === null) return node.state === "stored" ? { do: "serve" } : { do: "missing" };
      return { do: "hand off", to: copy.sealedFor, mayTakeBack: node.state === "stored" };
    case "new":
      // A copy that was created for an earlier assignment has never answered a request, so it is replaced.
      return isCurrent ? { do: "write", next: topicNodeAfterConfirmation(node), why: "confirm" } : { do: "create" };
    case "moving": {
      if (isCurrent) return { do: "write", next: topicNodeAfterConfirmation(node), why: "confirm" };
      const { source } = node;
      if (source?.owner === node.owner) {
        return copy?.epoch === source.epoch ? { do: "activate", what: "copy" } : { do: "missing" };
      }
      const isStaged = staged?.incarnation === node.incarnation && staged.owner === source?.owner &&
        staged.epoch === source.epoch;
      return isStaged ? { do: "activate", what: "staged" } : { do: "missing" };
    }
  }
}

function decideAsOther(me: string, node: TopicNode, copy: TopicCopy | null, staged: StagedCopy | null): TopicAction {
  // The copy is dropped only after the new owner has confirmed the topic. Until then, it is a second copy of all data.
  if (copy !== null && copy.epoch < node.epoch && node.state === "stored") return { do: "drop", epoch: node.epoch };
  if (staged === null) return none;
  if (staged.incarnation !== node.incarnation || staged.epoch < node.epoch) return { do: "discard" };
  if (staged.epoch > node.epoch) return { do: "read again" };
  // The owner confirmed this epoch before it sealed the copy, so this server read the node too early.
  if (node.state !== "stored" && node.state !== "sealed") return { do: "read again" };
  if (staged.owner !== node.owner) return { do: "discard" };
  return { do: "write", next: topicNodeAfterTransfer(node, me), why: "take" };
}

/** Returns the node for a stored copy after the copy's node was lost. */
function nodeOfCopy(me: string, { incarnation, baseOffset, epoch, sealedFor }: TopicCopy): TopicNode {
  return { owner: me, epoch, state: sealedFor === null ? "stored" : "sealed", incarnation, baseOffset, source: null };
}

/**
 * - look: the receiver has or had the topic; the node must be read after a sync
 * - repeat: try again after a pause
 * - take back: write the node with the next epoch, by compare-and-set
 * - give up: stop this handoff and start again later
 */
export type TopicHandoffDecision = "look" | "repeat" | "take back" | "give up";

/**
 * Decides what to do after an attempt to hand off a sealed copy. `reply` is null if no reply came, or nothing was sent.
 */
export function decideTopicHandoff(
  reply: TopicTransferReply | null,
  { isOver, mayTakeBack }: { readonly isOver: boolean; readonly mayTakeBack: boolean },
): TopicHandoffDecision {
  if (reply?.kind === "taken" || reply?.kind === "passed") return "look";
  if (reply === null && !isOver) return "repeat";
  return mayTakeBack ? "take back" : "give up";
}

/**
 * - stage: receive the content and store it
 * - staged: the content is already staged
 * - passed: the topic has moved on, and the offer is old
 * - unknown: the node does not confirm the offer, and must be read again
 */
export type TopicTransferDecision = "stage" | "staged" | "passed" | "unknown";

export function decideTopicTransfer(
  { incarnation, owner, epoch }: StagedCopy,
  { node, copy, unopened, staged, dropped }: TopicCopies & {
    readonly node: TopicNode | null;
  },
): TopicTransferDecision {
  const content = copy ?? unopened ?? null;
  if (content?.incarnation === incarnation && content.epoch >= epoch) return "passed";
  if (dropped?.incarnation === incarnation && dropped.epoch > epoch) return "passed";
  if (staged?.incarnation === incarnation && staged.epoch > epoch) return "passed";
  if (staged?.incarnation === incarnation && staged.epoch === epoch && staged.owner === owner) return "staged";
  if (node === null || node.incarnation !== incarnation || node.epoch < epoch) return "unknown";
  // An owner confirms an epoch before it seals a copy. If a node of this epoch is in another state, it was read too
  // early.
  if (node.epoch > epoch || node.owner !== owner) return "passed";
  return node.state === "stored" || node.state === "sealed" ? "stage" : "unknown";
}

export type TopicRestoreDecision =
  /**
   * Change nothing: another server owns the topic, the stored state is valid, or no request for the topic was ever
   * answered with OK.
   */
  | { readonly do: "keep" }
  /** Durably raise the stored copy's base offset to the base offset of `next`, then write `next` as the node. */
  | { readonly do: "restore"; readonly next: TopicNode }
  /** Give up the topic as `forget` does, or return it to its source: the restored store does not have it. */
  | { readonly do: "give up" }
  /** No message IDs are left, so the topic stays unavailable. */
  | { readonly do: "leave" };

/** Decides what happens to a topic when its owner's store was restored from an older copy. */
export function decideTopicRestore(
  me: string,
  node: TopicNode,
  { copy, staged }: Pick<TopicCopies, "copy" | "staged">,
): TopicRestoreDecision {
  if (node.owner !== me || node.state === "new") return { do: "keep" };
  const mine = copy?.incarnation === node.incarnation && copy.epoch <= node.epoch ? copy : null;
  if (node.state === "moving" && node.source?.owner !== me && mine?.epoch !== node.epoch) {
    // The topic was moving to this server when the store was lost. Either the restored store has the content, or the
    // source still has it.
    const isStaged = staged?.incarnation === node.incarnation && staged.epoch === node.source?.epoch;
    return isStaged ? { do: "keep" } : { do: "give up" };
  }
  // Another server may already own the content, but only the receiver knows that.
  if (node.state === "sealed") return mine?.sealedFor === null || mine === null ? { do: "leave" } : { do: "keep" };
  if (mine === null) return { do: "give up" };
  const next = topicNodeAfterRestore(node, mine.epoch);
  return next === null ? { do: "leave" } : { do: "restore", next };
}

export type TopicDeleteResult =
  | { readonly kind: "deleted" }
  | { readonly kind: "gone" }
  | { readonly kind: "refused"; readonly why: string }
  /** The server cannot delete the topic at present. */
  | { readonly kind: "kept"; readonly why: string };

/** Returns why a server cannot delete a topic for an operator; null if it can. */
export function whyTopicNotDeleted({ node, epoch, isServed, isMissing, acceptsLoss }: {
  /** The node as the server has read it; undefined if there is none. */
  readonly node: TopicNode | undefined;
  readonly epoch: number | null;
  readonly isServed: boolean;
  /** True if the topic belongs to this server, and the topic's data is missing or damaged. */
  readonly isMissing: boolean;
  readonly acceptsLoss: boolean;
}): TopicDeleteResult | null {
  if (node === undefined || node.owner === "") return { kind: "gone" };
  if (isMissing && !acceptsLoss) {
    return { kind: "refused", why: "its data is missing or damaged; to delete it anyway: --accept-loss" };
  }
  if (!isServed && !isMissing) return { kind: "kept", why: "this server does not serve it at present" };
  if (epoch === null || epoch === node.epoch) return null;
  return { kind: "kept", why: `it has changed since, and is at epoch ${node.epoch}` };
}
