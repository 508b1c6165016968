/** Formats rows as tables, for the commands that show rows. Pure. */
import { type TableCell, tableHeadCells } from "./table.ts";
import { topicStateText } from "../rows/row_texts.ts";
import type { TopicListRow, TopicServerRow } from "../rows/topic_row.ts";

export function serversTable(rows: readonly TopicServerRow[]): TableCell[][] {
  const hasStores = rows.some(({ store }) => store !== null);
  return [
    tableHeadCells(["SERVER", "STATE", "ENDPOINT", "TOPICS", ...hasStores ? ["DATABASE"] : []]),
    ...rows.map(({ server, endpoint, draining, topic_count, store }): TableCell[] => [
      server,
      endpoint === null ? { text: "offline", style: "red" } : draining ? "draining" : "serving",
      endpoint ?? "-",
      String(topic_count),
      ...hasStores ? [store === null ? "-" : store.slice(0, 8)] : [],
    ]),
  ];
}

export function topicsTable(rows: readonly TopicListRow[]): TableCell[][] {
  return [
    tableHeadCells(["TOPIC", "SERVER", "STATE", "EPOCH"]),
    ...rows.map((row): TableCell[] => {
      const state = topicStateText(row);
      return [row.topic, row.server, state === "offline" ? { text: state, style: "red" } : state, String(row.epoch)];
    }),
  ];
}
