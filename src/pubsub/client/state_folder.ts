/** Returns the folder for the states of all clients in a topic. */
import { createHash } from "node:crypto";
import { join, resolve } from "node:path";

/**
 * Returns the topic's folder in `base`, the folder for client states. Each topic has its own states, so that one client
 * ID can be used in several topics at the same time. This works because servers compare sessions in each topic
 * separately.
 */
export function topicClientStatesFolder(base: string, topic: string): string {
  return join(resolve(base), createHash("sha256").update(topic).digest("hex").slice(0, 32));
}
