/** Returns the folder for the states of all clients in a topic. */
import { createHash } from "node:crypto";
import { join, resolve } from "node:path";

/**
 * Returns the topic's folder in `base`, the folder for client states. Each topic has separate states, so that one
 * client ID can be used in several topics at the same time. Servers also compare sessions separately for each topic.
 */
export function topicClientStatesFolder(base: string, topic: string): string {
  return join(resolve(base), createHash("sha256").update(topic).digest("hex").slice(0, 32));
}
