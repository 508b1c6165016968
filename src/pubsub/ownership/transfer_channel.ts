/** How a topic's content gets from its owner to a receiver. The server implements it; tests use their own. */
import { abortable } from "../../base/support/abort.ts";
import type { ContentName, OutgoingContent } from "../store/operations/owned_store.ts";

/**
 * - taken: the receiver owns the topic, or has owned it since
 * - passed: the topic has moved on; read its node
 * - refused: the receiver does not take the topic; `why` is for the operator
 */
export type TopicTransferReply =
  | { readonly kind: "taken" }
  | { readonly kind: "passed" }
  | { readonly kind: "refused"; readonly why: string };

export interface ServerAddress {
  readonly id: string;
  /** The endpoint as announced. */
  readonly endpoint: string;
}

export interface TopicTransferChannel {
  /**
   * Asks for the first piece when the receiver is ready. Rejects if no reply came, or with the signal's reason; then
   * the receiver's state is unknown.
   */
  transfer(
    to: ServerAddress,
    topic: string,
    content: ContentName,
    options: { readonly outgoing: OutgoingContent; readonly signal: AbortSignal },
  ): Promise<TopicTransferReply>;
}

/** Stops at the end of the session, so that the next session starts when nothing of this one is running. */
export async function* transferPiecesUntilAbort<T>(
  signal: AbortSignal,
  pieces: AsyncIterable<T>,
): AsyncGenerator<T, void, void> {
  const iterator = pieces[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { done, value } = await abortable(iterator.next(), signal);
      if (done === true) return;
      yield value;
    }
  } finally {
    iterator.return?.()?.catch(() => {}); // it may wait for data that never comes
  }
}
