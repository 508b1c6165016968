/** Plans which topics move to which server, to drain a server or to balance all servers. Pure. */
import { chooseServerForTopic } from "../ownership/topic_router.ts";

export interface PlannedTopicMove {
  readonly topic: string;
  readonly from: string;
  readonly to: string;
}

export type TopicsByServer = ReadonlyMap<string, readonly string[]>;

/**
 * Plans to move each topic of a server to the server that has the fewest topics so far. The plan is empty if there is
 * no other server.
 */
export function planServerDrain(load: TopicsByServer, from: string): PlannedTopicMove[] {
  const counts = new Map([...load].filter(([id]) => id !== from).map(([id, topics]) => [id, topics.length]));
  if (counts.size === 0) return [];
  return (load.get(from) ?? []).map((topic) => {
    const to = chooseServerForTopic(counts) ?? "";
    counts.set(to, (counts.get(to) ?? 0) + 1);
    return { topic, from, to };
  });
}

/** Plans the fewest moves that are needed so that the numbers of topics of any two servers differ by at most one. */
export function planTopicRebalance(load: TopicsByServer): PlannedTopicMove[] {
  const moves: PlannedTopicMove[] = [];
  if (load.size === 0) return moves;
  const rest = new Map([...load].map(([id, topics]) => [id, [...topics]]));
  const counts = new Map([...load].map(([id, topics]) => [id, topics.length]));
  for (;;) {
    const from = chooseServerForTopic(new Map([...counts].map(([id, count]) => [id, -count]))) ?? "";
    const to = chooseServerForTopic(counts) ?? "";
    const most = counts.get(from) ?? 0;
    const fewest = counts.get(to) ?? 0;
    if (most - fewest < 2) return moves;
    // A topic that is moved in this plan is not moved again.
    const topic = rest.get(from)?.pop();
    if (topic === undefined) return moves;
    moves.push({ topic, from, to });
    counts.set(from, most - 1);
    counts.set(to, fewest + 1);
  }
}
