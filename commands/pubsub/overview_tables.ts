/** Tables of servers and topics, as `pubsub server ls`, `pubsub topic ls` and `top` show them. Pure. */
import type { ServerOverview } from "../../src/pubsub/admin/server_overview.ts";
import type { TopicNodeState } from "../../src/pubsub/ownership/topic_node.ts";
import { type TableCell, tableHeadCells } from "../../src/base/terminal/table.ts";

export interface PubsubServerRow {
  readonly server: string;
  /** Null if the server is offline. */
  readonly endpoint: string | null;
  readonly topics: number;
  readonly draining: boolean;
  /** The id of the database that it shares; null if it keeps its topics in its own folder. */
  readonly store: string | null;
}

export interface PubsubTopicRow {
  readonly topic: string;
  readonly server: string;
  readonly epoch: number;
  /** unserved: its server has left, and another server of its database takes it over with the next request */
  readonly state: TopicNodeState | "offline" | "unserved";
}

export function pubsubServerRows(servers: readonly ServerOverview[]): PubsubServerRow[] {
  return servers.map(({ id: server, endpoint, isDraining: draining, topics, store }) => ({
    server,
    endpoint,
    topics: topics.length,
    draining,
    store,
  }));
}

export function pubsubTopicRows(servers: readonly ServerOverview[]): PubsubTopicRow[] {
  return servers.flatMap(({ id: server, endpoint, isAvailable, topics }) =>
    topics.map(({ topic, node: { epoch, state } }): PubsubTopicRow => ({
      topic,
      server,
      epoch,
      state: endpoint !== null ? state : isAvailable ? "unserved" : "offline",
    }))
  );
}

export function pubsubServersTable(rows: readonly PubsubServerRow[]): TableCell[][] {
  const hasStores = rows.some(({ store }) => store !== null);
  return [
    tableHeadCells(["SERVER", "STATE", "ENDPOINT", "TOPICS", ...hasStores ? ["DATABASE"] : []]),
    ...rows.map(({ server, endpoint, draining, topics, store }): TableCell[] => [
      server,
      endpoint === null ? { text: "offline", style: "red" } : draining ? "draining" : "serving",
      endpoint ?? "-",
      String(topics),
      ...hasStores ? [store === null ? "-" : store.slice(0, 8)] : [],
    ]),
  ];
}

export function pubsubTopicsTable(rows: readonly PubsubTopicRow[]): TableCell[][] {
  return [
    tableHeadCells(["TOPIC", "SERVER", "STATE", "EPOCH"]),
    ...rows.map(({ topic, server, state, epoch }): TableCell[] => [
      topic,
      server,
      state === "offline" ? { text: state, style: "red" } : state,
      String(epoch),
    ]),
  ];
}
