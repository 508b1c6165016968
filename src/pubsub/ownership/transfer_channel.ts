/**
 * The interface through which an owner sends a topic's content to another server. The server implements it; tests have
 * their own implementations.
 */
import { rejectOnAbort } from "../../base/support/abort.ts";
import type { OutgoingContent, TopicContentId } from "../store/operations/owned_store.ts";

/**
 * - taken: the receiver owns the topic, or has owned it since the transfer
 * - passed: the topic has moved on, and its node must be read
 * - refused: the receiver does not take the topic; `why` tells the operator the reason
 */
export type TopicTransferReply =
  | { readonly kind: "taken" }
  | { readonly kind: "passed" }
  | { readonly kind: "refused"; readonly why: string };

export interface ServerAddress {
  readonly id: string;
  readonly endpoint: string;
}

export interface TopicTransferChannel {
  /**
   * Sends the content; takes the first piece from it when the receiver is ready. Rejects if no reply came, or with the
   * signal's reason. After a rejection, the state of the receiver is unknown.
   */
  transfer(
    to: ServerAddress,
    topic: string,
    content: TopicContentId,
    options: { readonly outgoing: OutgoingContent; readonly signal: AbortSignal },
  ): Promise<TopicTransferReply>;
}

/** Yields pieces until the session ends. No work of this session then runs when the next session starts. */
export async function* transferPiecesUntilAbort<T>(
  signal: AbortSignal,
  pieces: AsyncIterable<T>,
): AsyncGenerator<T, void, void> {
  const iterator = pieces[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { done, value } = await rejectOnAbort(iterator.next(), signal);
      if (done === true) return;
      yield value;
    }
  } finally {
    iterator.return?.()?.catch(() => {}); // the iterator may be waiting for data that never comes
  }
}
