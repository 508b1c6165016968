/** Reads the messages for a get from the log of its topic, and makes the response. */
import type { GetOperation, StoreResponse, TopicMessageContent } from "../operations/store_operations.ts";
import { messageRecordContentAt } from "../../wire/topic_records.ts";
import type { TopicClient } from "../rows/topic_client.ts";
import { DamageError } from "../../../base/storage/damage.ts";
import { countMissedMessages } from "../decisions/decide_read.ts";
import type { LogRow } from "../rows/topic_rows.ts";
import { getResponseBytesMax } from "../limits/topic_store_limits.ts";
import { batchMessagesMax } from "../../wire/message_limits.ts";
import type { StoredTopic } from "../content/stored_topic.ts";

/** A get that was accepted; its messages must still be read. */
export interface AcceptedGet {
  readonly get: GetOperation;
  readonly topic: StoredTopic;
  readonly subscriber: TopicClient;
  readonly next: number;
  readonly missed: number;
  /**
   * The last message of the topic when the get was decided. Later operations of the batch then do not change the
   * result.
   */
  readonly last: number;
}

/** Returns the response to a get, with at most as many messages as requested. Throws DamageError. */
export function readGetResponse(reading: AcceptedGet): StoreResponse {
  const { get: { ticket, peek, last: received }, subscriber, topic } = reading;
  const { messages, missed } = readMessages(reading);
  const [oldest] = messages;
  if (oldest === undefined) {
    // The messages were put while the topic had no subscriber, so they are not in the log.
    return { ticket, code: "NO_MESSAGE", reason: "there is no undelivered message", missed };
  }
  let redelivered = 0;
  for (const { id } of messages) if (id <= subscriber.deliveredUpTo) redelivered++;
  if (!peek) subscriber.deliveredUpTo = Math.max(subscriber.deliveredUpTo, messages.at(-1)?.id ?? 0);
  const { position, id: client } = subscriber;
  const lost = topic.losses.forMessages({ first: oldest.id, client, position: position ?? -1, received });
  return { ticket, code: "OK", reason: "", messages, redelivered, ...lost, missed: missed + lost.missed };
}

/**
 * Reads messages in order, at most as many as requested. Their bodies are views of rows. Throws DamageError if the
 * first message is damaged, and stops before a later damaged message.
 */
function readMessages(
  { get, topic, next, last, missed }: AcceptedGet,
): { messages: TopicMessageContent[]; missed: number } {
  const messages: TopicMessageContent[] = [];
  const countMax = Math.min(Math.max(1, get.max), batchMessagesMax);
  const bytesMax = getResponseBytesMax(get.maxBytes);
  let bytes = 0;
  let gone = missed;
  for (let id = next; id <= last && messages.length < countMax;) {
    const row = rowOrNullIfDamaged(topic, id, messages.length > 0);
    if (row === null || row.first > last) break;
    const isGivenUp = row.offsets.length === 0;
    if ((row.first > id || isGivenUp) && messages.length > 0) break; // IDs of one response have no gaps
    if (row.first > id) gone += countMissedMessages(id - 1, row.first, topic.baseOffset);
    id = Math.max(id, row.first);
    if (isGivenUp) {
      gone += row.last - id + 1;
      id = row.last + 1;
      continue;
    }
    for (; id <= row.last && id <= last && messages.length < countMax; id++) {
      const { msgId, body } = messageRecordContentAt(row.records, row.offsets[id - row.first] as number);
      bytes += body.byteLength;
      if (messages.length > 0 && bytes > bytesMax) return { messages, missed: gone };
      messages.push({ id, msgId, body });
    }
  }
  return { messages, missed: gone };
}

function rowOrNullIfDamaged(topic: StoredTopic, id: number, hasSome: boolean): LogRow | null {
  try {
    return topic.log.rowAt(id);
  } catch (error) {
    if (hasSome && error instanceof DamageError) return null; // the next get reports the damage
    throw error;
  }
}
