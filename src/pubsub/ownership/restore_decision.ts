/**
 * Decides what happens to a topic when its owner's store was restored from an older copy. Pure; the model in test/model
 * calls this function.
 */
import type { StagedCopy, TopicCopy } from "../store/owned_store.ts";
import { restored, type TopicNode } from "./topic_node.ts";

export type RestoreDecision =
  /**
   * No change: the topic belongs to another server, its stored state is valid, or no request for it was ever answered
   * OK.
   */
  | { readonly do: "keep" }
  /** Durably raise the base offset of the stored copy to that of `next`, then write the node. */
  | { readonly do: "restore"; readonly next: TopicNode }
  /** The copy does not have the topic: give it up as `forget` does, or return it to its source. */
  | { readonly do: "give up" }
  /** No message ids are left: the topic stays unavailable. */
  | { readonly do: "leave" };

export function decideRestore(me: string, node: TopicNode, { copy, staged }: {
  readonly copy: TopicCopy | null;
  readonly staged: StagedCopy | null;
}): RestoreDecision {
  if (node.owner !== me || node.state === "new") return { do: "keep" };
  const mine = copy?.incarnation === node.incarnation && copy.epoch <= node.epoch ? copy : null;
  if (node.state === "moving" && node.source?.owner !== me && mine?.epoch !== node.epoch) {
    // The topic was moving here when the store was lost. Either the restored copy has received it, or its source still
    // has it.
    const isStaged = staged?.incarnation === node.incarnation && staged.epoch === node.source?.epoch;
    return isStaged ? { do: "keep" } : { do: "give up" };
  }
  // Another server may already own the content; only the receiver knows.
  if (node.state === "sealed") return mine?.sealedFor === null || mine === null ? { do: "leave" } : { do: "keep" };
  if (mine === null) return { do: "give up" };
  const next = restored(node, mine.epoch);
  return next === null ? { do: "leave" } : { do: "restore", next };
}
