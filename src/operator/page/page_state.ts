/**
 * The state of the page: the rows as signals, so that a changed row draws itself alone; and what the user has chosen.
 */
import { batch, computed, type Signal, signal } from "@preact/signals";
import type { AboutRow, TableName, UiHello, UiPatch, UiTables } from "../ui/ui_rows.ts";

/** The rows of one table. `keys` changes when a row comes or goes. */
export interface TableState<Row> {
  readonly rows: Map<string, Signal<Row>>;
  readonly keys: Signal<readonly string[]>;
}

const emptyTable = <Row>(): TableState<Row> => ({ rows: new Map(), keys: signal([]) });

export const tables: { readonly [Name in TableName]: TableState<UiTables[Name]> } = {
  locks: emptyTable(),
  elections: emptyTable(),
  barriers: emptyTable(),
  pools: emptyTable(),
  ticks: emptyTable(),
  topics: emptyTable(),
  servers: emptyTable(),
  stores: emptyTable(),
  processes: emptyTable(),
  about: emptyTable(),
};

/** `waiting`: the first connection; `lost`: the program does not respond; `refused`: the token is wrong. */
export type StreamState = "waiting" | "live" | "lost" | "refused";

export const streamState = signal<StreamState>("waiting");
/** The reason of the last lost or refused connection. */
export const streamWhy = signal("");
export const hello = signal<UiHello | null>(null);
/** The program's wall clock, in milliseconds; moves once a second. */
export const nowMs = signal(Date.now());
/** The same, once a minute. */
export const nowMinuteMs = computed(() => nowMs.value - nowMs.value % 60_000);
let offsetMs = 0;

export function greet(greeting: UiHello): void {
  offsetMs = greeting.nowMs - Date.now();
  batch(() => {
    hello.value = greeting;
    tickClock();
  });
}

export function tickClock(): void {
  nowMs.value = Date.now() + offsetMs;
}

/** Null before the first rows. */
export function about(): AboutRow | null {
  void tables.about.keys.value;
  return tables.about.rows.get("about")?.value ?? null;
}

/** Replaces all rows (`isWhole`), or applies the changed ones. */
export function applyPatch(patch: UiPatch, isWhole: boolean): void {
  batch(() => {
    for (const name of Object.keys(tables) as TableName[]) {
      applyRows(tables[name] as TableState<unknown>, patch[name] ?? {}, isWhole);
    }
  });
}

function applyRows(table: TableState<unknown>, rows: Readonly<Record<string, unknown>>, isWhole: boolean): void {
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

/** A setting that this browser keeps. Where it may not store anything, it lasts as long as the page. */
export function storedChoice<Choice extends string>(
  name: string,
  choices: readonly [Choice, ...Choice[]],
): { readonly choice: Signal<Choice>; readonly next: () => void } {
  const choice = signal(choices[0]);
  try {
    const stored = localStorage.getItem(name);
    choice.value = choices.find((one) => one === stored) ?? choices[0];
  } catch {
    // storage is off
  }
  const next = () => {
    choice.value = choices[(choices.indexOf(choice.value) + 1) % choices.length] ?? choices[0];
    try {
      localStorage.setItem(name, choice.value);
    } catch {
      // storage is off
    }
  };
  return { choice, next };
}
