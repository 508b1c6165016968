/** Plans which topics move where, to drain a server or to balance all servers. Pure. */

export interface PlannedMove {
  readonly topic: string;
  readonly from: string;
  readonly to: string;
}

/** Topics of the announced servers, by server. */
export type TopicsByServer = ReadonlyMap<string, readonly string[]>;

/**
 * Moves all topics of a server, each to the server with the fewest topics at that point. Empty if there is no other
 * server.
 */
export function planDrain(load: TopicsByServer, from: string): PlannedMove[] {
  const counts = new Map([...load].filter(([id]) => id !== from).map(([id, topics]) => [id, topics.length]));
  if (counts.size === 0) return [];
  return (load.get(from) ?? []).map((topic) => {
    const to = extreme(counts, (a, b) => a < b);
    counts.set(to, (counts.get(to) ?? 0) + 1);
    return { topic, from, to };
  });
}

/** Plans the fewest moves after which no server has two topics more than another. */
export function planRebalance(load: TopicsByServer): PlannedMove[] {
  const moves: PlannedMove[] = [];
  if (load.size === 0) return moves;
  const rest = new Map([...load].map(([id, topics]) => [id, [...topics]]));
  const counts = new Map([...load].map(([id, topics]) => [id, topics.length]));
  for (;;) {
    const from = extreme(counts, (a, b) => a > b);
    const to = extreme(counts, (a, b) => a < b);
    const [most, fewest] = [counts.get(from) ?? 0, counts.get(to) ?? 0];
    if (most - fewest < 2) return moves;
    // A topic that is moved in this plan is not moved again.
    const topic = rest.get(from)?.pop();
    if (topic === undefined) return moves;
    moves.push({ topic, from, to });
    counts.set(from, most - 1);
    counts.set(to, fewest + 1);
  }
}

/** If several servers qualify, returns the one with the smallest ID. */
function extreme(counts: ReadonlyMap<string, number>, isBetter: (a: number, b: number) => boolean): string {
  let best: readonly [string, number] | null = null;
  for (const [id, count] of [...counts].sort(([a], [b]) => a < b ? -1 : 1)) {
    if (best === null || isBetter(count, best[1])) best = [id, count];
  }
  return best?.[0] ?? "";
}
