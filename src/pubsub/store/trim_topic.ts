/** Deletes what a topic does not need any more: what every subscriber has had, and what its retention gives up. */
import { deletedRowsPerCommitMax } from "./topic_store_limits.ts";
import type { StoreOptions } from "./store_options.ts";
import type { Topic } from "./stored_topic.ts";

/** In the open transaction; so many rows at most. Whether there is more to delete. */
export function trimTopic(topic: Topic, options: StoreOptions, nowMs: number): boolean {
  const { log } = topic;
  for (let rows = 0; rows < deletedRowsPerCommitMax; rows++) {
    if (!topic.hasPassed && !isGivenUp(topic, options, nowMs)) return false;
    log.dropOldest(topic.positions());
  }
  return topic.hasPassed || isGivenUp(topic, options, nowMs);
}

/** A row goes when what is behind it alone reaches the limit: somewhat more stays than was asked for, never less. */
export function isGivenUp(topic: Topic, options: StoreOptions, nowMs: number): boolean {
  const { log } = topic;
  const { oldest } = log;
  if (oldest === null) return false;
  const { retainMessages, retainBytes, retainMs } = options;
  if (retainMessages !== null && topic.pendingBehind(oldest.last) >= retainMessages) return true;
  if (retainBytes !== null && log.bytes - oldest.bytes >= retainBytes) return true;
  return retainMs !== null && nowMs - (log.oldestTimeMs() ?? nowMs) > retainMs;
}
