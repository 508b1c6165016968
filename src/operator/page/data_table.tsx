/** Shows a table of rows that users can sort, filter and operate by keyboard. Only the rows that change are redrawn. */
import { type Signal, signal, useComputed, useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { countText, shownText } from "../ui/shown_text.ts";
import type { UiTableName, UiTables } from "../ui/ui_rows.ts";
import { attentionOfRow, longHeldLocks } from "./attention.ts";
import { Mark } from "./marks.tsx";
import { type PageTable, pageTables } from "./page_state.ts";
import { RowLink } from "./row_parts.tsx";

export interface TableColumn<Row> {
  readonly id: string;
  readonly head: string;
  /** Returns the text for filtering and sorting. The text is also shown, unless there is a `cell`. */
  readonly text: (row: Row) => string;
  /** Returns the number by which rows are sorted instead of the text. */
  readonly order?: (row: Row) => number;
  readonly cell?: (row: Row) => ComponentChildren;
  readonly isNumber?: boolean;
}

interface DataTableProps<Name extends UiTableName> {
  readonly name: Name;
  readonly caption: string;
  /** The first column shows the row's name, which leads to the details. */
  readonly columns: readonly TableColumn<UiTables[Name]>[];
  /** The sentence for a table without rows. */
  readonly empty: string;
}

/** How many rows are drawn at first, and how many the button below the table adds. */
const drawnStep = 200;

/** The filter: only rows that contain this text are shown. */
export const rowFilterText = signal("");

interface TableSort {
  /** The column; empty for the first order. */
  readonly id: string;
  readonly isDown: boolean;
}

/** The first order: the rows that need attention, then the others, by their names. */
const attentionFirst: TableSort = { id: "", isDown: false };

export function DataTable<Name extends UiTableName>(
  { name, caption, columns, empty }: DataTableProps<Name>,
): JSX.Element {
  const table = pageTables[name] as PageTable<UiTables[Name]>;
  const sort = useSignal(attentionFirst);
  const drawn = useSignal(drawnStep);
  const isBusy = useSignal(false);
  const previous = useSignal<{ keys: readonly string[] }>({ keys: [] });
  const shown = useComputed(() => {
    const { id, isDown } = sort.value;
    const column = columns.find((one) => one.id === id);
    const sortValue = (key: string): SortValue => {
      const row = table.rows.get(key)?.value;
      if (row === undefined) return { number: 0, text: "" };
      if (column === undefined) return { number: attentionOrder(name, key), text: columns[0]?.text(row) ?? "" };
      const number = column.order?.(row);
      return number === undefined ? { number: 0, text: column.text(row) } : { number, text: "" };
    };
    const wanted = rowFilterText.value.trim().toLowerCase();
    const found = table.keys.value.filter((key) => {
      const row = table.rows.get(key)?.value;
      return row !== undefined &&
        (wanted === "" || columns.some(({ text }) => text(row).toLowerCase().includes(wanted)));
    });
    const last = previous.peek();
    const keys = isBusy.value ? keepOrder(last.keys, found) : sortedKeys(found, sortValue, isDown);
    // Returns the same array if the keys are unchanged, so that only changed rows are redrawn.
    if (keys.length !== last.keys.length || keys.some((key, index) => key !== last.keys[index])) last.keys = keys;
    return last.keys;
  });
  const keys = shown.value;
  const part = keys.slice(0, drawn.value);
  return (
    <div>
      <p class={rowFilterText.value === "" ? "count unseen" : "count"}>
        {countText(keys.length)} {rowFilterText.value === "" ? "" : `of ${countText(table.keys.value.length)} `}
        {keys.length === 1 ? "row" : "rows"}
      </p>
      {keys.length === 0
        ? <p class="empty">{table.keys.value.length === 0 ? empty : "No row has this text."}</p>
        : (
          <table>
            <caption class="unseen">{caption}</caption>
            <thead>
              <tr>
                {columns.map((column) => <HeadCell key={column.id} column={column} sort={sort} />)}
              </tr>
            </thead>
            <tbody
              onFocusIn={() => isBusy.value = true}
              onFocusOut={(event) => isBusy.value = event.currentTarget.contains(event.relatedTarget as Node | null)}
            >
              {part.map((key) => {
                const row = table.rows.get(key);
                return row === undefined ? null : <Row key={key} name={name} id={key} row={row} columns={columns} />;
              })}
            </tbody>
          </table>
        )}
      {keys.length > part.length && (
        <button type="button" class="more-rows" onClick={() => drawn.value += drawnStep}>
          Show {countText(Math.min(drawnStep, keys.length - part.length))} more rows
        </button>
      )}
    </div>
  );
}

function attentionOrder(name: UiTableName, key: string): number {
  const kind = attentionOfRow(name, key);
  if (kind === "bad") return 0;
  if (name === "locks" && longHeldLocks.value.has(key)) return 1;
  return kind === "warn" ? 2 : 3;
}

/** Keeps the order while a row has the focus. New rows go to the end. */
function keepOrder(before: readonly string[], found: readonly string[]): readonly string[] {
  const left = new Set(found);
  const kept = before.filter((key) => left.delete(key));
  return [...kept, ...left];
}

/** The value by which a row is sorted: a number, then a text. */
interface SortValue {
  readonly number: number;
  readonly text: string;
}

function sortedKeys(keys: readonly string[], valueOf: (key: string) => SortValue, isDown: boolean): readonly string[] {
  const valued = keys.map((key) => ({ key, ...valueOf(key) }));
  const compare = (a: string, b: string) => a < b ? -1 : a > b ? 1 : 0;
  valued.sort((a, b) => (isDown ? -1 : 1) * (a.number - b.number || compare(a.text, b.text)) || compare(a.key, b.key));
  return valued.map(({ key }) => key);
}

function HeadCell<Row>({ column, sort }: {
  readonly column: TableColumn<Row>;
  readonly sort: Signal<TableSort>;
}): JSX.Element {
  const { id, isDown } = sort.value;
  const isSorted = id === column.id;
  const direction = !isSorted ? "none" : isDown ? "descending" : "ascending";
  return (
    <th scope="col" aria-sort={direction} class={column.isNumber ? "number" : ""}>
      <button type="button" onClick={() => sort.value = { id: column.id, isDown: isSorted && !isDown }}>
        {column.head}
        <span aria-hidden="true">{isSorted ? (isDown ? " ▼" : " ▲") : ""}</span>
      </button>
    </th>
  );
}

function Row<Row>({ name, id, row, columns }: {
  readonly name: UiTableName;
  readonly id: string;
  readonly row: Signal<Row>;
  readonly columns: readonly TableColumn<Row>[];
}): JSX.Element {
  const value = row.value;
  const kind = attentionOfRow(name, id);
  return (
    <tr>
      {columns.map((column, index) => {
        const content = column.cell === undefined ? shownText(column.text(value)) : column.cell(value);
        if (index > 0) {
          return <td key={column.id} class={column.isNumber ? "number" : ""} data-head={column.head}>{content}</td>;
        }
        return (
          <th key={column.id} scope="row">
            <span class="state">
              {kind !== undefined && <Mark kind={kind} label={kind === "bad" ? "problem" : "warning"} />}
              <RowLink table={name} id={id}>{content}</RowLink>
            </span>
          </th>
        );
      })}
    </tr>
  );
}
