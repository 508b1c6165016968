/** Whether a topic may take more messages by its own limits. Pure. */
import type { StoreOptions } from "./store_options.ts";
import type { Topic } from "./topic.ts";

/** A sentence when so many new messages are too many; null otherwise. Where nobody is subscribed nothing is stored. */
export function whyFull(
  topic: Topic,
  { maxPending, maxTopicBytes }: Pick<StoreOptions, "maxPending" | "maxTopicBytes">,
  messages: number,
  bodies: readonly Uint8Array[],
): string | null {
  if (topic.subscribers.size === 0) return null;
  if (maxTopicBytes !== null) {
    let bytes = topic.log.bytes;
    for (const body of bodies) bytes += body.byteLength;
    if (bytes > maxTopicBytes) return `the topic would hold ${bytes} bytes; ${maxTopicBytes} are its limit`;
  }
  if (maxPending === null || topic.log.last - topic.log.first + 1 + messages <= maxPending) return null;
  const pending = topic.pendingOfSlowest();
  if (pending + messages <= maxPending) return null;
  return `${pending} messages wait for the slowest subscriber; ${maxPending} are the limit`;
}
