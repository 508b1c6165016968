/** Shows a table of rows that users can sort, filter and operate by keyboard. Only the rows that change are redrawn. */
import { type Signal, signal, useComputed, useSignal } from "@preact/signals";
import type { ComponentChildren, JSX } from "preact";
import { countText, shownText } from "../ui/shown_text.ts";
import type { PageTable } from "./page_state.ts";

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

interface DataTableProps<Row> {
  readonly caption: string;
  readonly table: PageTable<Row>;
  /** The first column shows the row's name, which opens the details. */
  readonly columns: readonly TableColumn<Row>[];
  /** The sentence for a table without rows. */
  readonly empty: string;
  readonly onOpen: (key: string) => void;
}

/** How many rows are drawn at first, and how many the button below the table adds. */
const drawnStep = 200;

/** The filter: only rows that contain this text are shown. */
export const rowFilterText = signal("");

export function DataTable<Row>({ caption, table, columns, empty, onOpen }: DataTableProps<Row>): JSX.Element {
  const sort = useSignal<{ readonly id: string; readonly isDown: boolean }>({
    id: columns[0]?.id ?? "",
    isDown: false,
  });
  const drawn = useSignal(drawnStep);
  const isBusy = useSignal(false);
  const previous = useSignal<{ keys: readonly string[] }>({ keys: [] });
  const shown = useComputed(() => {
    const { id, isDown } = sort.value;
    const column = columns.find((one) => one.id === id) ?? columns[0];
    const wanted = rowFilterText.value.trim().toLowerCase();
    const found = table.keys.value.filter((key) => {
      const row = table.rows.get(key)?.value;
      return row !== undefined &&
        (wanted === "" || columns.some(({ text }) => text(row).toLowerCase().includes(wanted)));
    });
    const last = previous.peek();
    const keys = isBusy.value ? keepOrder(last.keys, found) : sortKeys(found, table, column, isDown);
    // Returns the same array if the keys are unchanged, so that only changed rows are redrawn.
    if (keys.length !== last.keys.length || keys.some((key, index) => key !== last.keys[index])) last.keys = keys;
    return last.keys;
  });
  const keys = shown.value;
  const part = keys.slice(0, drawn.value);
  return (
    <div>
      <p class="count">
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
                return row === undefined
                  ? null
                  : <Row key={key} id={key} row={row} columns={columns} onOpen={onOpen} />;
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

/** Keeps the order while a row has the focus. New rows go to the end. */
function keepOrder(before: readonly string[], found: readonly string[]): readonly string[] {
  const left = new Set(found);
  const kept = before.filter((key) => left.delete(key));
  return [...kept, ...left];
}

function sortKeys<Row>(
  keys: string[],
  { rows }: PageTable<Row>,
  column: TableColumn<Row> | undefined,
  isDown: boolean,
): readonly string[] {
  if (column === undefined) return keys;
  const { order, text } = column;
  const valued = keys.flatMap((key) => {
    const row = rows.get(key)?.value;
    return row === undefined ? [] : [{ key, number: order?.(row) ?? 0, text: order === undefined ? text(row) : "" }];
  });
  const compare = (a: string, b: string) => a < b ? -1 : a > b ? 1 : 0;
  valued.sort((a, b) => (isDown ? -1 : 1) * (a.number - b.number || compare(a.text, b.text)) || compare(a.key, b.key));
  return valued.map(({ key }) => key);
}

function HeadCell<Row>({ column, sort }: {
  readonly column: TableColumn<Row>;
  readonly sort: Signal<{ readonly id: string; readonly isDown: boolean }>;
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

function Row<Row>({ id, row, columns, onOpen }: {
  readonly id: string;
  readonly row: Signal<Row>;
  readonly columns: readonly TableColumn<Row>[];
  readonly onOpen: (key: string) => void;
}): JSX.Element {
  const value = row.value;
  return (
    <tr>
      {columns.map((column, index) => {
        const content = column.cell === undefined ? shownText(column.text(value)) : column.cell(value);
        const name = column.isNumber ? "number" : "";
        return index === 0
          ? (
            <th key={column.id} scope="row">
              <button type="button" class="name" data-row={id} onClick={() => onOpen(id)}>{content}</button>
            </th>
          )
          : <td key={column.id} class={name} data-head={column.head}>{content}</td>;
      })}
    </tr>
  );
}
