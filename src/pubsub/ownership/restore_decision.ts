/** What becomes of a topic whose owner's store was put back to an earlier time. Pure; the model in test/model asks this function. */
import type { StagedCopy, TopicCopy } from "../store/owned_store.ts";
import { restored, type TopicNode } from "./topic_node.ts";

export type RestoreDecision =
  /** Nothing: it is another's, or what is stored is what counts, or nobody was answered for it. */
  | { readonly do: "keep" }
  /** Number messages from behind the node's baseOffset, durably; then write the node. */
  | { readonly do: "restore"; readonly next: TopicNode }
  /** It is not in what was put back: given up, as by `forget`; or it goes back to where it came from. */
  | { readonly do: "give up" }
  /** Numbers have run out: it stays as it is, unavailable. */
  | { readonly do: "leave" };

export function decideRestore(me: string, node: TopicNode, { copy, staged }: {
  readonly copy: TopicCopy | null;
  readonly staged: StagedCopy | null;
}): RestoreDecision {
  if (node.owner !== me || node.state === "new") return { do: "keep" };
  const mine = copy?.incarnation === node.incarnation && copy.epoch <= node.epoch ? copy : null;
  if (node.state === "moving" && node.source?.owner !== me && mine?.epoch !== node.epoch) {
    // On its way here when the store was lost: either it has arrived in what was put back, or its source has it yet.
    const isStaged = staged?.incarnation === node.incarnation && staged.epoch === node.source?.epoch;
    return isStaged ? { do: "keep" } : { do: "give up" };
  }
  // Somebody else may have gone on with it already: only its receiver knows.
  if (node.state === "sealed") return mine?.sealedFor === null || mine === null ? { do: "leave" } : { do: "keep" };
  if (mine === null) return { do: "give up" };
  const next = restored(node, mine.epoch);
  return next === null ? { do: "leave" } : { do: "restore", next };
}
