/** What a get brings, from the rows of a topic's log. */
import type { GetOperation, StoredMessage } from "../../../wire/pubsub/store_operations.ts";
import { messageContentAt } from "../../../wire/pubsub/topic_data.ts";
import type { Client } from "./client.ts";
import { missedBetween } from "./decide_read.ts";
import { getBytesDefault } from "./store_limits.ts";
import { batchMessagesMax, bodyBytesMax } from "../../../wire/pubsub/limits.ts";
import type { Topic } from "./topic.ts";

export interface Reading {
  readonly get: GetOperation;
  readonly topic: Topic;
  readonly client: Client;
  readonly next: number;
  readonly missed: number;
  /** The newest message when it was decided: a later unsubscribe of the same batch cuts nothing off, and adds nothing. */
  readonly last: number;
}

/** As many as the get asks for, in their order; bodies are views onto rows of the store. */
export function readMessages(
  { get, topic, next, last, missed }: Reading,
): { messages: StoredMessage[]; missed: number } {
  const messages: StoredMessage[] = [];
  const countMax = Math.min(Math.max(1, get.max), batchMessagesMax);
  const bytesMax = getBytesMax(get);
  let bytes = 0;
  let gone = missed;
  for (let id = next; id <= last && messages.length < countMax;) {
    const row = topic.log.rowAt(id);
    if (row === null || row.first > last) break;
    if (row.first > id && messages.length > 0) break; // ids of one answer follow each other
    if (row.first > id) gone += missedBetween(id - 1, row.first, topic.floor);
    id = Math.max(id, row.first);
    for (; id <= row.last && id <= last && messages.length < countMax; id++) {
      const { msgId, body } = messageContentAt(row.records, row.offsets[id - row.first] as number);
      bytes += body.byteLength;
      if (messages.length > 0 && bytes > bytesMax) return { messages, missed: gone };
      messages.push({ id, msgId, body });
    }
  }
  return { messages, missed: gone };
}

/** What its bodies may take together: no more than one message on the wire has room for. */
export function getBytesMax({ maxBytes }: GetOperation): number {
  return maxBytes === 0 ? getBytesDefault : Math.min(maxBytes, bodyBytesMax);
}
