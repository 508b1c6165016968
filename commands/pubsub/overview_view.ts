/** The servers of publish/subscribe and their topics, as `pubsub server ls`, `pubsub topic ls` and `top` show them. Pure. */
import type { ServerOverview } from "../../src/pubsub/admin/overview.ts";
import type { TopicNodeState } from "../../src/pubsub/ownership/topic_node.ts";
import { type Cell, headCells } from "../../src/terminal/table.ts";

export interface ShownServer {
  readonly server: string;
  /** Null if the server is offline. */
  readonly endpoint: string | null;
  readonly topics: number;
  readonly draining: boolean;
}

export interface ShownTopic {
  readonly topic: string;
  readonly server: string;
  readonly epoch: number;
  readonly state: TopicNodeState | "offline";
}

export function serverRows(servers: readonly ServerOverview[]): ShownServer[] {
  return servers.map(({ id: server, endpoint, isDraining: draining, topics }) => ({
    ...{ server, endpoint, topics: topics.length, draining },
  }));
}

export function topicRows(servers: readonly ServerOverview[]): ShownTopic[] {
  return servers.flatMap(({ id: server, endpoint, topics }) =>
    topics.map(({ topic, node: { epoch, state } }): ShownTopic => ({
      ...{ topic, server, epoch, state: endpoint === null ? "offline" : state },
    }))
  );
}

export function serversTable(rows: readonly ShownServer[]): Cell[][] {
  return [
    headCells(["SERVER", "STATE", "ENDPOINT", "TOPICS"]),
    ...rows.map(({ server, endpoint, draining, topics }): Cell[] => [
      server,
      endpoint === null ? { text: "offline", style: "red" } : draining ? "draining" : "serving",
      endpoint ?? "-",
      String(topics),
    ]),
  ];
}

export function topicsTable(rows: readonly ShownTopic[]): Cell[][] {
  return [
    headCells(["TOPIC", "SERVER", "STATE", "EPOCH"]),
    ...rows.map(({ topic, server, state, epoch }): Cell[] => [
      topic,
      server,
      state === "offline" ? { text: state, style: "red" } : state,
      String(epoch),
    ]),
  ];
}
