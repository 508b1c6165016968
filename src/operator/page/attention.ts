/** Finds what an operator should look at, from the rows of all tables. */
import { isStoreUnattended } from "../../base/rows/store_row.ts";
import { countText, shownText } from "../ui/shown_text.ts";
import { aboutProgram, type PageTable, pageTables, programNowMinuteMs } from "./page_state.ts";
import { tickScheduleState, type ViewName } from "./views.tsx";

export interface AttentionItem {
  readonly view: ViewName;
  readonly text: string;
}

const attentionsMax = 50;

const rowsOf = <Row>({ keys, rows }: PageTable<Row>): Row[] =>
  keys.value.flatMap((key) => rows.get(key)?.value ?? []) as Row[];

/**
 * Returns the problems that need attention. Call this function from a computed signal, which runs only after a change,
 * because the function reads all rows.
 */
export function listAttentionItems(): readonly AttentionItem[] {
  const found: AttentionItem[] = [];
  const add = (view: ViewName, text: string) => void found.push({ view, text });
  for (const problem of aboutProgram()?.problems ?? []) add("overview", shownText(problem));
  for (const row of rowsOf(pageTables.ticks)) {
    const { kind, text } = tickScheduleState(row, programNowMinuteMs.value);
    if (kind === "bad") add("ticks", `Tick ${shownText(row.name)} (${shownText(row.schedule)}): ${shownText(text)}`);
  }
  for (const row of rowsOf(pageTables.stores)) {
    const { name, states: { dead: { count: dead } } } = row;
    if (isStoreUnattended(row)) add("retry", `Store ${shownText(name)}: messages wait, and no processor is running`);
    if (dead > 0) {
      add("retry", `Store ${shownText(name)}: ${countText(dead)} dead ${dead === 1 ? "letter" : "letters"}`);
    }
  }
  for (const { name, failed } of rowsOf(pageTables.pools)) {
    if (failed > 0) add("pools", `Pool ${shownText(name)}: ${countText(failed)} failed`);
  }
  for (const { server, endpoint, topic_count } of rowsOf(pageTables.servers)) {
    if (endpoint === null) {
      add("servers", `Server ${shownText(server)} is offline and owns ${countText(topic_count)} topics`);
    }
  }
  for (const [view, table] of [["locks", pageTables.locks], ["elections", pageTables.elections]] as const) {
    for (const { name, problem, first_holders } of rowsOf(table)) {
      const what = `${view === "locks" ? "Lock" : "Election"} ${shownText(name)}`;
      if (problem !== null) add(view, `${what}: ${shownText(problem)}`);
      else if (first_holders.some(({ revoke }) => revoke !== null)) {
        add(view, `${what}: its holder was asked to release it`);
      }
    }
  }
  return found.slice(0, attentionsMax);
}
