/** Whether a server can delete a topic for an operator, and what has become of it. Pure. */
import type { TopicNode } from "./topic_node.ts";

export type DeleteResult =
  | { readonly kind: "deleted" }
  /** It is deleted already, or never was. */
  | { readonly kind: "gone" }
  /** Something would be lost by it. */
  | { readonly kind: "refused"; readonly why: string }
  /** Not now. */
  | { readonly kind: "kept"; readonly why: string };

/** Null: it can be deleted. `isMissing`: it belongs to this server, and its data is missing or damaged there. */
export function whyNotDeleted({ node, epoch, isServed, isMissing, acceptsLoss }: {
  /** As read by the server; undefined: there is none. */
  readonly node: TopicNode | undefined;
  /** What the operator has read. */
  readonly epoch: number | null;
  readonly isServed: boolean;
  readonly isMissing: boolean;
  readonly acceptsLoss: boolean;
}): DeleteResult | null {
  if (node === undefined || node.owner === "") return { kind: "gone" };
  if (isMissing && !acceptsLoss) {
    return { kind: "refused", why: "its data is missing or damaged there: --accept-loss gives it up" };
  }
  if (!isServed && !isMissing) return { kind: "kept", why: "this server does not serve it at present" };
  if (epoch === null || epoch === node.epoch) return null;
  return { kind: "kept", why: `it has changed since: it is at epoch ${node.epoch}` };
}
