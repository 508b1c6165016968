/** Lists all servers with the topics that they own, for operators. */
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { readAnnouncements } from "../ownership/process_announcement.ts";
import { type ListedTopic, readTopicList } from "../ownership/topic_nodes.ts";
import type { PubsubPath } from "../ownership/pubsub_path.ts";

export interface ServerOverview {
  readonly id: string;
  /** The address of the server; null if the server is offline. */
  readonly endpoint: string | null;
  /**
   * The ID of the database that the server shares with other servers. Null if the server stores its topics in its own
   * folder.
   */
  readonly store: string | null;
  /** True if the server's topics can be served, by this server or by another server of the same database. */
  readonly isAvailable: boolean;
  /** True if the server is being drained. It then gets no new topics. */
  readonly isDraining: boolean;
  /** The server's topics, sorted by name. */
  readonly topics: readonly ListedTopic[];
}

/**
 * Returns all servers sorted by ID, including offline servers that own topics. For a server of a later version, whose
 * announcement cannot be read, adds the reason to `problems`, or rejects with CONFIG if there is no such list.
 */
export async function readServerOverview(
  zk: ZooKeeper,
  path: PubsubPath,
  problems: string[] | null = null,
): Promise<ServerOverview[]> {
  const { known, later } = await readAnnouncements(zk, path.servers);
  for (const error of later.values()) {
    if (problems === null) throw error;
    problems.push(error.message);
  }
  const there = new Map(known.map((server) => [server.id, server]));
  const topics = Map.groupBy(await Array.fromAsync(readTopicList(zk, path)), ({ node }) => node.owner);
  topics.delete("");
  const ids = [...new Set([...there.keys(), ...topics.keys()])].sort();
  const storesThere = new Set([...there.values()].flatMap(({ store }) => store ?? []));
  return ids.map((id) => {
    const announced = there.get(id);
    const store = announced?.store ?? topics.get(id)?.find(({ node }) => node.store !== undefined)?.node.store ?? null;
    return {
      id,
      store,
      endpoint: announced?.endpoint ?? null,
      isAvailable: announced !== undefined || later.has(path.server(id)) || (store !== null && storesThere.has(store)),
      isDraining: announced?.isDraining ?? false,
      topics: (topics.get(id) ?? []).sort((a, b) => a.topic < b.topic ? -1 : 1),
    };
  });
}
