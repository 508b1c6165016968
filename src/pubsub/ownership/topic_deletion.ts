/** Decides whether a server can delete a topic for an operator. Pure. */
import type { TopicNode } from "./topic_node.ts";

export type DeleteResult =
  | { readonly kind: "deleted" }
  /** The topic does not exist. */
  | { readonly kind: "gone" }
  /** Data would be lost. */
  | { readonly kind: "refused"; readonly why: string }
  /** Not possible at present. */
  | { readonly kind: "kept"; readonly why: string };

/** Returns null if the topic can be deleted. `isMissing`: it belongs to this server, but its data is missing or damaged. */
export function whyNotDeleted({ node, epoch, isServed, isMissing, acceptsLoss }: {
  /** The node as read by the server; undefined if none exists. */
  readonly node: TopicNode | undefined;
  /** The epoch that the operator has read. */
  readonly epoch: number | null;
  readonly isServed: boolean;
  readonly isMissing: boolean;
  readonly acceptsLoss: boolean;
}): DeleteResult | null {
  if (node === undefined || node.owner === "") return { kind: "gone" };
  if (isMissing && !acceptsLoss) {
    return { kind: "refused", why: "its data is missing or damaged; to delete it anyway: --accept-loss" };
  }
  if (!isServed && !isMissing) return { kind: "kept", why: "this server does not serve it at present" };
  if (epoch === null || epoch === node.epoch) return null;
  return { kind: "kept", why: `it has changed since, and is at epoch ${node.epoch}` };
}
