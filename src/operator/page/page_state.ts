/** Holds the state of the page. Each row is a signal, so that only changed rows are redrawn. */
import { batch, computed, type Signal, signal } from "@preact/signals";
import type { AboutRow, UiStreamHello, UiTableName, UiTablePatch, UiTables } from "../ui/ui_rows.ts";

/** The rows of one table. `keys` changes when a row is added or removed. */
export interface PageTable<Row> {
  readonly rows: Map<string, Signal<Row>>;
  readonly keys: Signal<readonly string[]>;
}

const emptyTable = <Row>(): PageTable<Row> => ({ rows: new Map(), keys: signal([]) });

export const pageTables: { readonly [Name in UiTableName]: PageTable<UiTables[Name]> } = {
  locks: emptyTable(),
  elections: emptyTable(),
  barriers: emptyTable(),
  pools: emptyTable(),
  ticks: emptyTable(),
  topics: emptyTable(),
  servers: emptyTable(),
  stores: emptyTable(),
  processes: emptyTable(),
  findings: emptyTable(),
  about: emptyTable(),
};

/** The kind of object of each table, in words. */
export const rowTitles: Partial<Record<UiTableName, string>> = {
  locks: "Lock",
  elections: "Election",
  barriers: "Barrier",
  pools: "Pool",
  ticks: "Schedule",
  topics: "Topic",
  servers: "Server",
  stores: "Store",
  processes: "Process",
};

/** Returns the name of a row, which differs from the key if another table's rows have the same key. */
export function rowName(table: UiTableName, key: string): string {
  const row = pageTables[table].rows.get(key)?.peek();
  return row !== undefined && "name" in row ? row.name : key;
}

/** Returns the address of a row's details on this page. */
export const rowHref = (table: UiTableName, key: string): string =>
  `#${table === "stores" ? "retry" : table}/${encodeURIComponent(key)}`;

/**
 * State of the connection to `baton ui`: `waiting` at first, `lost` without a response, `refused` for a wrong token.
 */
export type StreamState = "waiting" | "live" | "lost" | "refused";

export const streamState = signal<StreamState>("waiting");
/** Why the last connection was lost or refused. */
export const streamFailureReason = signal("");
export const receivedStreamHello = signal<UiStreamHello | null>(null);
/** The wall clock of `baton ui`, in milliseconds; changes once a second. */
export const programNowMs = signal(Date.now());
/** The wall clock of `baton ui`, rounded down to the minute. */
export const programNowMinuteMs = computed(() => programNowMs.value - programNowMs.value % 60_000);
let offsetMs = 0;

export function applyStreamHello(greeting: UiStreamHello): void {
  offsetMs = greeting.nowMs - Date.now();
  batch(() => {
    receivedStreamHello.value = greeting;
    tickPageClock();
  });
}

export function tickPageClock(): void {
  programNowMs.value = Date.now() + offsetMs;
}

/** Returns the row about `baton ui` itself; null until the first rows have arrived. */
export function aboutProgram(): AboutRow | null {
  void pageTables.about.keys.value;
  return pageTables.about.rows.get("about")?.value ?? null;
}

/** Applies the changed rows; if `isWhole`, also removes all other rows. */
export function applyTablePatch(patch: UiTablePatch, isWhole: boolean): void {
  batch(() => {
    for (const name of Object.keys(pageTables) as UiTableName[]) {
      applyRows(pageTables[name] as PageTable<unknown>, patch[name] ?? {}, isWhole);
    }
  });
}

function applyRows(table: PageTable<unknown>, rows: Readonly<Record<string, unknown>>, isWhole: boolean): void {
  const { rows: known, keys } = table;
  let isListChanged = false;
  if (isWhole) {
    for (const key of known.keys()) if (!Object.hasOwn(rows, key)) isListChanged = known.delete(key) || isListChanged;
  }
  for (const [key, row] of Object.entries(rows)) {
    const found = known.get(key);
    if (row === null) isListChanged = known.delete(key) || isListChanged;
    else if (found !== undefined) found.value = row;
    else {
      known.set(key, signal(row));
      isListChanged = true;
    }
  }
  if (isListChanged) keys.value = [...known.keys()];
}

/**
 * Returns a choice that the browser remembers. If the browser's storage is disabled, the choice lasts as long as the
 * page.
 */
export function rememberedBrowserChoice<Choice extends string>(
  name: string,
  choices: readonly [Choice, ...Choice[]],
): { readonly choice: Signal<Choice>; readonly next: () => void } {
  const choice = signal(choices[0]);
  try {
    const stored = localStorage.getItem(name);
    choice.value = choices.find((one) => one === stored) ?? choices[0];
  } catch {
    // the browser's storage is disabled
  }
  const next = () => {
    choice.value = choices[(choices.indexOf(choice.value) + 1) % choices.length] ?? choices[0];
    try {
      localStorage.setItem(name, choice.value);
    } catch {
      // the browser's storage is disabled
    }
  };
  return { choice, next };
}
