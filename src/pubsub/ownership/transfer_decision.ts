/** Whether a server stages what another one sends it. Pure; the model in test/model asks this very function. */
import type { DroppedTopic, StagedCopy, TopicCopy } from "../store/owned_store.ts";
import type { TopicNode } from "./topic_node.ts";

/**
 * - stage: take it in, durably
 * - staged: it is here already
 * - passed: the topic is past that, whatever this old message says
 * - unknown: the node does not say so, or not yet: read it and look again
 */
export type TransferDecision = "stage" | "staged" | "passed" | "unknown";

export function decideTransfer({ incarnation, owner, epoch }: StagedCopy, { node, copy, staged, dropped }: {
  /** As read in this session. */
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
  // An owner seals only what it has confirmed, so that a node of this epoch in another state is an old one.
  if (node.epoch > epoch || node.owner !== owner) return "passed";
  return node.state === "stored" || node.state === "sealed" ? "stage" : "unknown";
}
