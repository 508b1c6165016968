/** What a get brings, from the rows of a topic's log. */
import type { GetOperation, StoreResponse, TopicMessageContent } from "../../wire/pubsub/store_operations.ts";
import { messageContentAt } from "../../wire/pubsub/topic_transfer_data.ts";
import type { TopicClient } from "./topic_client.ts";
import { DamageError } from "../../storage/damage.ts";
import { missedBetween } from "./decide_read.ts";
import type { LogRow } from "./log_rows.ts";
import { getBytesDefault } from "./topic_store_limits.ts";
import { batchMessagesMax, bodyBytesMax } from "../../wire/pubsub/message_limits.ts";
import type { StoredTopic } from "./stored_topic.ts";

export interface PendingRead {
  readonly get: GetOperation;
  readonly topic: StoredTopic;
  readonly client: TopicClient;
  readonly next: number;
  readonly missed: number;
  /** The newest message when it was decided: a later unsubscribe of the same batch cuts nothing off, and adds nothing. */
  readonly last: number;
}

/** The response to a get: as many messages as it asks for. Throws Damaged. */
export function responseFrom(reading: PendingRead): StoreResponse {
  const { get: { ticket, peek }, client } = reading;
  const { messages, missed } = readMessages(reading);
  if (messages.length === 0) {
    // Nothing is there but a gap: messages that were put while nobody was subscribed.
    return { ticket, code: "NO_MESSAGE", reason: "there is no message that this subscriber has not had", missed };
  }
  let redelivered = 0;
  for (const { id } of messages) if (id <= client.handedOut) redelivered++;
  if (!peek) client.handedOut = Math.max(client.handedOut, messages.at(-1)?.id ?? 0);
  return { ticket, code: "OK", reason: "", messages, missed, redelivered };
}

/**
 * As many as the get asks for, in their order; bodies are views onto rows of the store. Throws Damaged where the first of them is:
 * what comes before a damaged one is brought.
 */
function readMessages(
  { get, topic, next, last, missed }: PendingRead,
): { messages: TopicMessageContent[]; missed: number } {
  const messages: TopicMessageContent[] = [];
  const countMax = Math.min(Math.max(1, get.max), batchMessagesMax);
  const bytesMax = getBytesMax(get);
  let bytes = 0;
  let gone = missed;
  for (let id = next; id <= last && messages.length < countMax;) {
    const row = rowAt(topic, id, messages.length > 0);
    if (row === null || row.first > last) break;
    const isGivenUp = row.offsets.length === 0;
    if ((row.first > id || isGivenUp) && messages.length > 0) break; // ids of one response follow each other
    if (row.first > id) gone += missedBetween(id - 1, row.first, topic.baseOffset);
    id = Math.max(id, row.first);
    if (isGivenUp) {
      gone += row.last - id + 1;
      id = row.last + 1;
      continue;
    }
    for (; id <= row.last && id <= last && messages.length < countMax; id++) {
      const { msgId, body } = messageContentAt(row.records, row.offsets[id - row.first] as number);
      bytes += body.byteLength;
      if (messages.length > 0 && bytes > bytesMax) return { messages, missed: gone };
      messages.push({ id, msgId, body });
    }
  }
  return { messages, missed: gone };
}

function rowAt(topic: StoredTopic, id: number, hasSome: boolean): LogRow | null {
  try {
    return topic.log.rowAt(id);
  } catch (error) {
    if (hasSome && error instanceof DamageError) return null; // the next get is told
    throw error;
  }
}

/** What its bodies may take together: no more than one message on the wire has room for. */
export function getBytesMax({ maxBytes }: GetOperation): number {
  return maxBytes === 0 ? getBytesDefault : Math.min(maxBytes, bodyBytesMax);
}
