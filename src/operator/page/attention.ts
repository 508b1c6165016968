/** Lists what needs attention: the findings that `baton doctor` reports, too, with the rows that they are about. */
import { computed } from "@preact/signals";
import type { Finding, JudgedRows } from "../../base/rows/finding.ts";
import { judgeRows } from "../../base/rows/row_findings.ts";
import { aboutProgram, type PageTable, pageTables, programNowMinuteMs } from "./page_state.ts";
import type { ViewName } from "./views.tsx";

export interface AttentionItem extends Omit<Finding, "id"> {
  /** Items with the same `id` are of one kind. */
  readonly id: string;
  readonly view: ViewName;
  /** The key of the row that the item is about; null if it is about no row. */
  readonly key: string | null;
}

const severityOrder = { problem: 0, warning: 1 } as const;

/** Everything that needs attention, the worst first. Computed at most once after each change. */
export const attentionItems = computed((): readonly AttentionItem[] => {
  const nowMs = programNowMinuteMs.value;
  const { locks, elections, barriers, pools, ticks, stores, topics } = pageTables;
  const items = [
    ...unreadableParts(),
    ...judged("ticks", ticks, (row) => ({ schedule: [row] }), nowMs),
    ...judged("retry", stores, (row) => ({ store: [row] }), nowMs),
    ...judged("pools", pools, (row) => ({ pool: [row] }), nowMs),
    ...judged("locks", locks, (row) => ({ lock: [row] }), nowMs),
    ...judged("elections", elections, (row) => ({ election: [row] }), nowMs),
    ...judged("barriers", barriers, (row) => ({ [row.kind]: [row] }), nowMs),
    ...judgedTopics(topics, nowMs),
  ];
  return items.sort((a, b) => severityOrder[a.severity] - severityOrder[b.severity]);
});

/** The worst mark of each view that has something to look at. */
export const attentionByView = computed((): ReadonlyMap<ViewName, "bad" | "warn"> => {
  const marks = new Map<ViewName, "bad" | "warn">();
  for (const { view, severity } of attentionItems.value) {
    if (severity === "problem") marks.set(view, "bad");
    else if (!marks.has(view)) marks.set(view, "warn");
  }
  return marks;
});

function judged<Row>(
  view: ViewName,
  { keys, rows }: PageTable<Row>,
  asJudged: (row: Row) => JudgedRows,
  nowMs: number,
): AttentionItem[] {
  return keys.value.flatMap((key) => {
    const row = rows.get(key)?.value;
    return row === undefined ? [] : judgeRows(asJudged(row), nowMs).map((finding) => ({ ...finding, view, key }));
  });
}

/** Topics are judged together: one server that is offline is one finding. */
function judgedTopics({ keys, rows }: typeof pageTables.topics, nowMs: number): AttentionItem[] {
  const topic = keys.value.flatMap((key) => rows.get(key)?.value ?? []);
  return judgeRows({ topic }, nowMs).map((finding) => ({ ...finding, view: "topics", key: null }));
}

/** Lists the parts that `baton ui` itself could not read. */
function unreadableParts(): AttentionItem[] {
  return (aboutProgram()?.problems ?? []).map((what) => ({
    severity: "warning",
    id: "part-unreadable",
    view: "overview",
    key: null,
    where: "a part of this page",
    what,
    action: "baton doctor",
  }));
}
