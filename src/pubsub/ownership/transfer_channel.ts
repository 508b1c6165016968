/** Sends a topic's content from its owner to a receiver. The server implements it; tests use their own. */
import { abortable } from "../../base/support/abort.ts";
import type { ContentName, OutgoingContent } from "../store/operations/owned_store.ts";

/**
 * - taken: the receiver owns the topic, or has owned it since
 * - passed: the topic has moved on; read its node
 * - refused: the receiver does not take the topic; `why` tells the operator the reason
 */
export type TopicTransferReply =
  | { readonly kind: "taken" }
  | { readonly kind: "passed" }
  | { readonly kind: "refused"; readonly why: string };

export interface ServerAddress {
  readonly id: string;
  /** The announced endpoint. */
  readonly endpoint: string;
}

export interface TopicTransferChannel {
  /**
   * Sends the content, and asks for its first piece when the receiver is ready. Rejects if no reply came, or with the
   * signal's reason; the receiver's state is then unknown.
   */
  transfer(
    to: ServerAddress,
    topic: string,
    content: ContentName,
    options: { readonly outgoing: OutgoingContent; readonly signal: AbortSignal },
  ): Promise<TopicTransferReply>;
}

/** Yields pieces until the session ends, so that the next session starts when none of this one's work is running. */
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
    iterator.return?.()?.catch(() => {}); // it may be waiting for data that never comes
  }
}
