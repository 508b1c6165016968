/** A verdict in one line. */
import type { HistoryVerdict } from "./check_history.ts";

export function verdictLine({ partitions, violated, undecided }: HistoryVerdict): string {
  const total = (count: (one: HistoryVerdict["partitions"][number]) => number) =>
    partitions.reduce((sum, one) => sum + count(one), 0);
  const proved = partitions.length - violated.length - undecided.length;
  const byWitness = partitions.filter(({ by }) => by === "witness").length;
  return `${total(({ operations }) => operations)} operations, ${
    total(({ unknown }) => unknown)
  } of unknown outcome, on ` +
    `${partitions.length} objects: ${proved} linearizable (${byWitness} by the service's own order), ` +
    `${violated.length} violated, ${undecided.length} undecided`;
}
