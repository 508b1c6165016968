/** Finds the running proxies in the coordination service, for clients. */
import { rejectOnAbort } from "../../base/support/abort.ts";
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { readAnnouncements } from "./process_announcement.ts";
import type { PubsubPath } from "./pubsub_path.ts";

/**
 * Returns the endpoints of all announced proxies in random order, so that clients spread over the proxies. Rejects with
 * the signal's reason, or with CONFIG if all proxies are of later versions.
 */
export async function findAnnouncedProxies(zk: ZooKeeper, path: PubsubPath, signal: AbortSignal): Promise<string[]> {
  const { known, later } = await rejectOnAbort(readAnnouncements(zk, path.proxies), signal);
  const [error] = later.values();
  if (known.length === 0 && error !== undefined) throw error;
  const endpoints = known.map(({ endpoint }) => endpoint);
  for (let at = 0; at < endpoints.length; at++) {
    const other = at + Math.floor(Math.random() * (endpoints.length - at));
    [endpoints[at], endpoints[other]] = [endpoints[other] as string, endpoints[at] as string];
  }
  return endpoints;
}
