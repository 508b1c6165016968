/** Returns the folder for the states of all clients in a topic. */
import { createHash } from "node:crypto";
import { join, resolve } from "node:path";

/**
 * `base` is the folder for client states. Each topic has its own states, because servers compare sessions in each topic
 * separately. So one client ID can be used in several topics at the same time. Pure.
 */
export function topicStateFolder(base: string, topic: string): string {
  return join(resolve(base), createHash("sha256").update(topic).digest("hex").slice(0, 32));
}
