/** Makes the rows in which commands and the page show topics, their subscribers, and servers. */
import type { TopicDetailsRow, TopicListRow, TopicServerDetails, TopicServerRow } from "../../base/rows/topic_row.ts";
import type { RowKind, RowSnapshot } from "../../base/rows/row_kinds.ts";
import { nullIfNoNode } from "../../coordination/nodes/node_requests.ts";
import type { ZooKeeper } from "../../protocols/zookeeper/zookeeper.ts";
import { readServerOverview, type ServerOverview } from "../admin/server_overview.ts";
import { PubsubPath } from "../ownership/pubsub_path.ts";
import type { TopicDetails } from "../store/operations/topic_details.ts";

/**
 * Reads the rows of topics and servers below the node `root`. The result has only the wanted kinds, and the problems of
 * servers that this version cannot read.
 */
export async function readOverviewRows(
  zk: ZooKeeper,
  root: string,
  kinds: readonly RowKind[],
): Promise<{ readonly rows: Pick<RowSnapshot["rows"], "topic" | "server">; readonly problems: readonly string[] }> {
  const path = new PubsubPath(root);
  const problems: string[] = [];
  const isUsed = await zk.exists(path.base) !== null;
  // Reads the list of shards (nodes above topics) only for clients that cache reads: they then notice a new shard.
  const [servers] = isUsed
    ? await Promise.all([readServerOverview(zk, path, problems), nullIfNoNode(zk.getChildren(path.topics))])
    : [[]];
  const rows = {
    ...(kinds.includes("topic") ? { topic: makeTopicListRows(servers) } : {}),
    ...(kinds.includes("server") ? { server: servers.map(makeServerRow) } : {}),
  };
  return { rows, problems };
}

export function makeTopicListRows(servers: readonly ServerOverview[]): TopicListRow[] {
  const rows = servers.flatMap(({ id: server, endpoint, isAvailable: there, topics }) =>
    topics.map(({ topic, node: { epoch, state } }): TopicListRow => {
      return { topic, server, there, served: endpoint !== null, epoch, state };
    })
  );
  return rows.sort((a, b) => a.topic < b.topic ? -1 : 1);
}

export function makeServerRow(
  { id: server, endpoint, isDraining: draining, store, topics }: ServerOverview,
): TopicServerRow {
  return { server, endpoint, store, draining, topic_count: topics.length };
}

export function makeServerDetails(overview: ServerOverview): TopicServerDetails {
  const topics = overview.topics.map(({ topic, node: { epoch, state } }) => ({ topic, epoch, state }));
  return { ...makeServerRow(overview), topics };
}

export function makeTopicDetailsRow(topic: string, server: string, details: TopicDetails): TopicDetailsRow {
  const sinceMs = details.undeliveredSinceMs ?? null; // a server of release 0.1.0 does not send it
  return {
    topic,
    server,
    epoch: details.epoch,
    first: String(details.first),
    end: String(details.end),
    bytes: details.bytes,
    clients: details.clients,
    plain_clients: details.plainClients,
    max_clients: details.clientsMax,
    subscriber_count: details.subscribers,
    subscribers: details.slowest.map(({ client, position, pending }) => {
      return { client, position: String(position), pending };
    }),
    oldest: sinceMs === null ? null : new Date(sinceMs).toISOString(),
    damage: details.damage,
  };
}
