/** Lists what needs attention: the findings about the rows, which `baton doctor` reports, too. */
import { computed } from "@preact/signals";
import type { FindingSeverity } from "../../base/rows/finding.ts";
import type { RecordedFindingRow, UiTableName } from "../ui/ui_rows.ts";
import { isLongerThanUsual } from "./charts.tsx";
import { aboutProgram, pageTables, programNowMinuteMs } from "./page_state.ts";
import { usualHoldMs } from "./row_parts.tsx";
import { tablesOfView, type ViewName } from "./view_names.ts";

export interface AttentionItem extends Omit<RecordedFindingRow, "id" | "since"> {
  /** Items with the same `id` are of one kind. */
  readonly id: string;
  /** Null if the page does not know when it began. */
  readonly since: string | null;
}

const severityOrder = { problem: 0, warning: 1 } as const;
/** The order of the findings of one severity: first those about work that is not done. */
const tableOrder: readonly UiTableName[] = [
  "about",
  "stores",
  "ticks",
  "servers",
  "topics",
  "processes",
  "locks",
  "elections",
  "barriers",
  "pools",
];
const markKinds = { problem: "bad", warning: "warn" } as const;

/** Everything that needs attention, the worst first. */
export const attentionItems = computed((): readonly AttentionItem[] => {
  const { keys, rows } = pageTables.findings;
  const found = keys.value.flatMap((key): AttentionItem[] => {
    const row = rows.get(key)?.value;
    return row === undefined ? [] : [row];
  });
  return [...unreadableParts(), ...found].sort((a, b) =>
    severityOrder[a.severity] - severityOrder[b.severity] ||
    tableOrder.indexOf(a.table) - tableOrder.indexOf(b.table) ||
    (a.key < b.key ? -1 : 1)
  );
});

const viewOfTable: Partial<Record<UiTableName, ViewName>> = { stores: "retry", processes: "servers" };

export const viewOfItem = ({ table }: AttentionItem): ViewName =>
  table === "about" || table === "findings" ? "overview" : viewOfTable[table] ?? table as ViewName;

/** The views that show an item. Topics that no client can reach are a finding about their server. */
const viewsOfItem = (item: AttentionItem): readonly ViewName[] =>
  item.id === "topics-without-server" ? ["servers", "topics"] : [viewOfItem(item)];

/** The worst mark of each view that has something to look at. */
export const attentionByView = computed((): ReadonlyMap<ViewName, "bad" | "warn"> => worstMarks(viewsOfItem));

/** The worst mark of each row that has something to look at, by table and key. */
const attentionByRow = computed(() => worstMarks(rowsOfItem));

function rowsOfItem({ id, table, key }: AttentionItem): string[] {
  if (id !== "topics-without-server") return [`${table}/${key}`];
  return [`${table}/${key}`, ...unreachableTopics(key).map((topic) => `topics/${topic}`)];
}

/** The topics of a server that no client can reach. */
export function unreachableTopics(server: string): readonly string[] {
  const { keys, rows } = pageTables.topics;
  return keys.value.filter((topic) => {
    const row = rows.get(topic)?.value;
    return row?.server === server && !row.there;
  });
}

/** The locks that are held longer than usual while others wait. That is a hint, and no finding. */
export const longHeldLocks = computed((): ReadonlySet<string> => {
  const { keys, rows } = pageTables.locks;
  return new Set(keys.value.filter((key) => {
    const row = rows.get(key)?.value;
    const since = row?.first_holders[0]?.since ?? null;
    if (row === undefined || since === null || (row.waiters ?? 0) === 0) return false;
    return isLongerThanUsual(programNowMinuteMs.value - Date.parse(since), usualHoldMs(row));
  }));
});

export function attentionOfRow(table: UiTableName, key: string): "bad" | "warn" | undefined {
  const hint = table === "locks" && longHeldLocks.value.has(key) ? "warn" : undefined;
  return attentionByRow.value.get(`${table}/${key}`) ?? hint;
}

/** Counts the rows of a view that need attention. */
export const countAttentionRows = (view: ViewName): number =>
  [...attentionByRow.value.keys()].filter((row) => tablesOfView[view].some((table) => row.startsWith(`${table}/`)))
    .length;

function worstMarks<Key>(keysOf: (item: AttentionItem) => readonly Key[]): ReadonlyMap<Key, "bad" | "warn"> {
  const marks = new Map<Key, "bad" | "warn">();
  for (const item of attentionItems.value.toReversed()) {
    for (const key of keysOf(item)) marks.set(key, markKinds[item.severity]);
  }
  return marks;
}

/** Counts the items of a severity. */
export const countOfSeverity = (severity: FindingSeverity): number =>
  attentionItems.value.filter((item) => item.severity === severity).length;

/** Lists the parts that `baton ui` itself could not read. */
function unreadableParts(): AttentionItem[] {
  return (aboutProgram()?.problems ?? []).map((what) => ({
    severity: "warning",
    id: "part-unreadable",
    table: "about",
    key: what,
    where: "a part of this page",
    what,
    action: "baton doctor",
    since: null,
    isOlder: false,
  }));
}
