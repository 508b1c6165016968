/** Whether a topic may take more messages by its own limits. Pure. */
import type { StoreOptions } from "./store_options.ts";
import type { Topic } from "./stored_topic.ts";

/**
 * A sentence when so many new messages are too many; null otherwise. Where nobody is subscribed nothing is stored. Messages that
 * came together are stored together: those that no limit could ever take have to have room for one of them, and go beyond it.
 */
export function whyFull(
  topic: Topic,
  { maxPending, maxTopicBytes }: Pick<StoreOptions, "maxPending" | "maxTopicBytes">,
  messages: number,
  bodies: readonly Uint8Array[],
): string | null {
  if (topic.subscribers.size === 0) return null;
  if (maxTopicBytes !== null) {
    const [largest, all] = sizesOf(bodies);
    const bytes = topic.log.bytes + (all > maxTopicBytes ? largest : all);
    if (bytes > maxTopicBytes) return `the topic would hold ${bytes} bytes; ${maxTopicBytes} are its limit`;
  }
  if (maxPending === null || topic.log.last - topic.log.first + 1 + messages <= maxPending) return null;
  const pending = topic.pendingOfSlowest();
  if (pending + (messages > maxPending ? 1 : messages) <= maxPending) return null;
  const more = messages === 1 ? "" : `, and ${messages} come together`;
  return `${pending} messages wait for the slowest subscriber${more}; ${maxPending} are the limit`;
}

/** In bytes: of the largest, and of all. */
function sizesOf(bodies: readonly Uint8Array[]): [largest: number, all: number] {
  let [largest, all] = [0, 0];
  for (const { byteLength } of bodies) {
    largest = Math.max(largest, byteLength);
    all += byteLength;
  }
  return [largest, all];
}
