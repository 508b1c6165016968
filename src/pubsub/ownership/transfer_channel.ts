/** How a topic's content gets from its owner to a receiver. The wire is somebody else's; a test may put anything here. */
import type { ContentName, OutgoingContent } from "../store/owned_store.ts";

/**
 * - taken: the receiver owns the topic now, or has owned it since
 * - passed: the topic is past that; read its node
 * - refused: it will not take it: `why` says so to an operator
 */
export type TransferReply =
  | { readonly kind: "taken" }
  | { readonly kind: "passed" }
  | { readonly kind: "refused"; readonly why: string };

export interface ServerAddress {
  readonly id: string;
  /** As the peer has registered it. */
  readonly endpoint: string;
}

export interface TransferChannel {
  /**
   * Asks for the first piece when the receiver has begun to take the topic in. Rejects when no answer came, or with the signal's
   * reason; then nobody knows what the receiver has done.
   */
  transfer(
    to: ServerAddress,
    topic: string,
    content: ContentName,
    options: { readonly outgoing: OutgoingContent; readonly signal: AbortSignal },
  ): Promise<TransferReply>;
}
