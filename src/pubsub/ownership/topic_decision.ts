/**
 * What a server has to do about one topic, from what it has stored and what the topic's node said when it was read. The
 * whole protocol but for its two choices: when an owner begins a hand-over, and when it gives one up. Pure; the model in
 * test/model decides by this very function, with reads as old as they may be.
 */
import type { StagedCopy, TopicCopy } from "../store/owned_store.ts";
import { confirmed, taken, type TopicNode } from "./topic_node.ts";

export interface TopicFacts {
  /** The server's own id. */
  readonly me: string;
  /** Null: there is no node. */
  readonly node: TopicNode | null;
  readonly copy: TopicCopy | null;
  readonly staged: StagedCopy | null;
}

export type TopicAction =
  /** Answer requests, while the lease allows it. */
  | { readonly do: "serve" }
  /** Send what is sealed, or take it back where `mayTakeBack`. */
  | { readonly do: "hand off"; readonly to: string; readonly mayTakeBack: boolean }
  /** The node is missing: make it. */
  | { readonly do: "register"; readonly next: TopicNode }
  /** Compare-and-set from what was read. */
  | { readonly do: "write"; readonly next: TopicNode; readonly why: "confirm" | "take" | "claim" }
  /** Store an empty topic. */
  | { readonly do: "create" }
  /** Open what is stored at the node's epoch: the own sealed copy, or what was staged in its place. */
  | { readonly do: "activate"; readonly what: "copy" | "staged" }
  /** Remove the copy up to this epoch: its successor is durable elsewhere. */
  | { readonly do: "drop"; readonly epoch: number }
  /** Remove what was staged: others went on without it. */
  | { readonly do: "discard" }
  /** Keep the copy out of the way: it is not the content that the node names. */
  | { readonly do: "set aside" }
  /** The node is older than what is stored: it was not read as it is. */
  | { readonly do: "read again" }
  /** Owned, and the data is not here: unavailable until an operator decides. */
  | { readonly do: "missing" }
  /** Nothing to do with it at present. */
  | { readonly do: "none" };

const none: TopicAction = { do: "none" };

export function decideTopic({ me, node, copy, staged }: TopicFacts): TopicAction {
  if (node === null) return copy === null ? none : { do: "register", next: registered(me, copy) };
  if (copy !== null && copy.incarnation !== node.incarnation) return { do: "set aside" };
  if (copy !== null && copy.epoch > node.epoch) {
    return { do: "write", next: registered(me, copy), why: "claim" };
  }
  return node.owner === me ? ofOwner(node, copy, staged) : ofOther(me, node, copy, staged);
}

function ofOwner(node: TopicNode, copy: TopicCopy | null, staged: StagedCopy | null): TopicAction {
  const isCurrent = copy?.epoch === node.epoch;
  switch (node.state) {
    case "stored":
    case "sealed":
      if (!isCurrent) return { do: "missing" };
      if (copy.sealedFor === null) return node.state === "stored" ? { do: "serve" } : { do: "missing" };
      return { do: "hand off", to: copy.sealedFor, mayTakeBack: node.state === "stored" };
    case "new":
      // What was created for an earlier assignment never answered anything: begin again.
      return isCurrent ? { do: "write", next: confirmed(node), why: "confirm" } : { do: "create" };
    case "moving": {
      if (isCurrent) return { do: "write", next: confirmed(node), why: "confirm" };
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

function ofOther(me: string, node: TopicNode, copy: TopicCopy | null, staged: StagedCopy | null): TopicAction {
  // Not before the new owner has confirmed: until then this is a second copy of everything.
  if (copy !== null && copy.epoch < node.epoch && node.state === "stored") return { do: "drop", epoch: node.epoch };
  if (staged === null) return none;
  if (staged.incarnation !== node.incarnation || staged.epoch < node.epoch) return { do: "discard" };
  if (staged.epoch > node.epoch) return { do: "read again" };
  // What was staged had been sealed at this epoch, and so had been confirmed before.
  if (node.state !== "stored" && node.state !== "sealed") return { do: "read again" };
  if (staged.owner !== node.owner) return { do: "discard" };
  return { do: "write", next: taken(node, me), why: "take" };
}

/** The node of a copy whose node was lost. */
function registered(me: string, { incarnation, baseOffset, epoch, sealedFor }: TopicCopy): TopicNode {
  return { owner: me, epoch, state: sealedFor === null ? "stored" : "sealed", incarnation, baseOffset, source: null };
}
