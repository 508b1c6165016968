/** One attempt to send a topic to another server, and how long it may take. Decides nothing about who owns it. */
import { abortable, throwIfAborted } from "../../support/abort.ts";
import { BatonError, messageOf } from "../../errors.ts";
import type { Tenure } from "./owned_topic.ts";
import type { TopicCopy } from "./topic_decision.ts";
import type { TransferReply } from "./transfer_channel.ts";

export interface SendOptions {
  readonly to: string;
  /** Called once for an open copy, when hardly anything of it is left to be sent. */
  readonly seal: () => Promise<void>;
  /** When a sealed copy is given up; asked when it is sealed. Before that it may take long, as long as it goes on. */
  readonly giveUpAtMs: () => number;
}

/** Rejects with what finding the receiver rejects with, and with the reason why the tenure is over. */
export async function sendTopic(
  { id, store, channel, clock, signal, peer }: Tenure,
  topic: string,
  { incarnation, baseOffset, epoch, sealedFor }: TopicCopy,
  { to, seal, giveUpAtMs }: SendOptions,
): Promise<TransferReply | { readonly kind: "unanswered"; readonly why: string }> {
  const receiver = await peer(to);
  if (receiver === null) return { kind: "refused", why: `the server "${to}" is not there` };
  const late = new AbortController();
  const reason = () => new BatonError("UNREACHABLE", `The server "${to}" has not taken "${topic}" in time`);
  const limit = () => clock.after(Math.max(0, giveUpAtMs() - clock.now()), () => late.abort(reason()));
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

/** What is being received, given up with the session: the next one begins when nothing of this one goes on. */
export async function* receivedUntil<T>(signal: AbortSignal, pieces: AsyncIterable<T>): AsyncGenerator<T, void, void> {
  const iterator = pieces[Symbol.asyncIterator]();
  try {
    for (;;) {
      const { done, value } = await abortable(iterator.next(), signal);
      if (done === true) return;
      yield value;
    }
  } finally {
    iterator.return?.()?.catch(() => {}); // it may be waiting for what never comes
  }
}
