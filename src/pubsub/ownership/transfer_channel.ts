/** How a topic's content gets from its owner to a receiver. The server implements it; tests use their own. */
import { abortable, throwIfAborted } from "../../support/abort.ts";
import type { Clock } from "../../support/clock.ts";
import { BatonError, messageOf } from "../../errors.ts";
import type { ContentName, OutgoingContent, OwnedStore, TopicCopy } from "../store/owned_store.ts";

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

/** Values that a transfer needs of its session. */
export interface TransferContext {
  /** This server's id. */
  readonly id: string;
  readonly store: OwnedStore;
  readonly channel: TransferChannel;
  readonly clock: Clock;
  /** Aborts when the session ends. */
  readonly signal: AbortSignal;
  /** Returns null if the server is not running. */
  addressOf(id: string): Promise<ServerAddress | null>;
}

interface SendTopicOptions {
  readonly to: string;
  /** Called once for an open copy when almost all of it is sent. */
  readonly seal: () => Promise<void>;
  /** Deadline of the handoff after the seal. Before the seal there is none, as long as data flows. */
  readonly deadlineMs: () => number;
}

/**
 * One attempt to send a topic to another server. Rejects with the error of finding the receiver, and with the reason of
 * the session's end.
 */
export async function sendTopic(
  { id, store, channel, clock, signal, addressOf }: TransferContext,
  topic: string,
  { incarnation, baseOffset, epoch, sealedFor }: TopicCopy,
  { to, seal, deadlineMs }: SendTopicOptions,
): Promise<TransferReply | { readonly kind: "unanswered"; readonly why: string }> {
  const receiver = await addressOf(to);
  if (receiver === null) return { kind: "refused", why: `the server "${to}" is not running` };
  const late = new AbortController();
  const reason = () => new BatonError("UNREACHABLE", `The server "${to}" did not take "${topic}" in time`);
  const limit = () => clock.after(Math.max(0, deadlineMs() - clock.now()), () => late.abort(reason()));
  let cancel = sealedFor === null ? () => {} : limit();
  try {
    const outgoing = store.export(topic, epoch, async () => {
      await seal();
      cancel = limit();
    });
    const content = { incarnation, baseOffset, owner: id, epoch };
    return await channel.transfer(receiver, topic, content, {
      outgoing,
      signal: AbortSignal.any([signal, late.signal]),
    });
  } catch (thrown) {
    throwIfAborted(signal);
    return { kind: "unanswered", why: messageOf(thrown) };
  } finally {
    cancel();
  }
}

/** Stops at the end of the session, so that the next session starts when nothing of this one is running. */
export async function* receivedUntil<T>(signal: AbortSignal, pieces: AsyncIterable<T>): AsyncGenerator<T, void, void> {
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
