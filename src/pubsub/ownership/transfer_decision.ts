/**
 * Decides whether a server stages content that another server sends. Pure; the model in test/model calls this function.
 */
import type { DroppedTopic, StagedCopy, TopicCopy } from "../store/owned_store.ts";
import type { TopicNode } from "./topic_node.ts";

/**
 * - stage: receive and store the content
 * - staged: the content is staged already
 * - passed: the topic has moved on; the offer is old
 * - unknown: the node does not confirm the offer; read it again
 */
export type TransferDecision = "stage" | "staged" | "passed" | "unknown";

export function decideTransfer({ incarnation, owner, epoch }: StagedCopy, { node, copy, staged, dropped }: {
  /** The node as read in this session. */
  readonly node: TopicNode | null;
  readonly copy: TopicCopy | null;
  readonly staged: StagedCopy | null;
  readonly dropped: DroppedTopic | null;
}): TransferDecision {
  if (copy?.incarnation === incarnation && copy.epoch >= epoch) return "passed";
  if (dropped?.incarnation === incarnation && dropped.epoch > epoch) return "passed";
  if (staged?.incarnation === incarnation && staged.epoch > epoch) return "passed";
  if (staged?.incarnation === incarnation && staged.epoch === epoch && staged.owner === owner) return "staged";
  if (node === null || node.incarnation !== incarnation || node.epoch < epoch) return "unknown";
  // An owner seals only what it has confirmed, so a node of this epoch in another state was read too early.
  if (node.epoch > epoch || node.owner !== owner) return "passed";
  return node.state === "stored" || node.state === "sealed" ? "stage" : "unknown";
}
