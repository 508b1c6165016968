/** Returns the folder for the states of all clients in a topic. */
import { join, resolve } from "node:path";
import { sha256Hex } from "../../base/support/digest.ts";

/**
 * Returns the topic's folder in `base`, the folder for client states. Each topic has separate states, so that one
 * client ID can be used in several topics at the same time. Servers also compare sessions separately for each topic.
 */
export function topicClientStatesFolder(base: string, topic: string): string {
  return join(resolve(base), sha256Hex(topic).slice(0, 32));
}
