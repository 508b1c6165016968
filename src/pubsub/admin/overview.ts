/** Servers and the topics that each owns, for operators. */
import type { ZooKeeper } from "../../zookeeper/zookeeper.ts";
import { announcementsBelow } from "../ownership/announcements.ts";
import { type ListedTopic, readTopicList } from "../ownership/topic_nodes.ts";
import type { PubsubPath } from "../ownership/pubsub_path.ts";

export interface ServerOverview {
  readonly id: string;
  /** Null if the server is offline, and its topics are unavailable. */
  readonly endpoint: string | null;
  /** The server gets no new topics. */
  readonly isDraining: boolean;
  /** Sorted by name. */
  readonly topics: readonly ListedTopic[];
}

/** Returns servers sorted by ID, including servers that are away and own topics. */
export async function readOverview(zk: ZooKeeper, path: PubsubPath): Promise<ServerOverview[]> {
  const there = new Map((await announcementsBelow(zk, path.servers)).map((server) => [server.id, server]));
  const topics = Map.groupBy(await Array.fromAsync(readTopicList(zk, path)), ({ node }) => node.owner);
  topics.delete("");
  const ids = [...new Set([...there.keys(), ...topics.keys()])].sort();
  return ids.map((id) => ({
    id,
    endpoint: there.get(id)?.endpoint ?? null,
    isDraining: there.get(id)?.isDraining ?? false,
    topics: (topics.get(id) ?? []).sort((a, b) => a.topic < b.topic ? -1 : 1),
  }));
}
