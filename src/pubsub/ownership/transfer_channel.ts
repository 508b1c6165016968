/** How a topic's content gets from its owner to a receiver. The server implements it; tests use their own. */
import type { ContentName, OutgoingContent } from "../store/owned_store.ts";

/**
 * - taken: the receiver owns the topic, or has owned it since
 * - passed: the topic has moved on; read its node
 * - refused: the receiver does not take the topic; `why` is for the operator
 */
export type TransferReply =
  | { readonly kind: "taken" }
  | { readonly kind: "passed" }
  | { readonly kind: "refused"; readonly why: string };

export interface ServerAddress {
  readonly id: string;
  /** The endpoint as announced. */
  readonly endpoint: string;
}

export interface TransferChannel {
  /**
   * Asks for the first piece when the receiver is ready. Rejects if no reply came, or with the signal's reason; then
   * the receiver's state is unknown.
   */
  transfer(
    to: ServerAddress,
    topic: string,
    content: ContentName,
    options: { readonly outgoing: OutgoingContent; readonly signal: AbortSignal },
  ): Promise<TransferReply>;
}
