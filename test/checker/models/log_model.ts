/**
 * A log whose entries have rising IDs, and readers with cursors. A read from an ID returns what follows it, without a
 * gap; a take returns what follows the reader's cursor and moves it, so that each reader has each entry once.
 */
import { z } from "zod";
import type { CheckerModel, HistoryOperation } from "../operation.ts";

const id = z.number().int();
const entries = z.object({ entries: z.array(z.tuple([id, z.string()])) });
const shape = z.discriminatedUnion("do", [
  z.object({
    do: z.literal("append"),
    input: z.object({ value: z.string() }),
    output: z.object({ id: id.optional() }).nullable(),
  }),
  z.object({ do: z.literal("read"), input: z.object({ after: id }), output: entries.nullable() }),
  z.object({ do: z.literal("take"), input: z.object({ reader: z.string() }), output: entries.nullable() }),
  z.object({
    do: z.literal("subscribe"),
    input: z.object({ reader: z.string(), at: z.enum(["start", "end"]) }),
    output: z.object({}).nullable(),
  }),
]);

/** An entry and all before it. Equal logs have equal keys. */
interface Tail {
  readonly key: number;
  readonly length: number;
  readonly value: string;
  /** Null as long as no response has named it. */
  readonly id: number | null;
  readonly before: Tail | null;
}

type Intern = (before: Tail | null, value: string, id: number | null) => Tail;

interface Log {
  readonly tail: Tail | null;
  readonly lastId: number;
  /** The number of entries that each reader has taken. */
  readonly cursors: ReadonlyMap<string, number>;
  readonly intern: Intern;
}

function interner(): Intern {
  const keys = new Map<string, number>();
  return (before, value, id) => {
    const text = JSON.stringify([before?.key ?? 0, id, value]);
    const key = keys.get(text) ?? keys.size + 1;
    keys.set(text, key);
    return { key, length: (before?.length ?? 0) + 1, value, id, before };
  };
}

function appended(state: Log, { input, output }: HistoryOperation): Log | null {
  const told = (output as { id?: number } | null)?.id ?? null;
  if (told !== null && told <= state.lastId) return null;
  const tail = state.intern(state.tail, (input as { value: string }).value, told);
  return { ...state, tail, lastId: told ?? state.lastId };
}

/** The entries from number `start` on (counted from 0), oldest first. */
function entriesFrom({ tail }: Log, start: number): Tail[] {
  const found: Tail[] = [];
  for (let one = tail; one !== null && one.length > start; one = one.before) found.push(one);
  return found.reverse();
}

function idAtOrBefore(tail: Tail | null): number {
  let one = tail;
  while (one !== null && one.id === null) one = one.before;
  return one?.id ?? -Infinity;
}

/** The log with the IDs that a response has named; null when it named others, or others' values. */
function withNamed(state: Log, start: number, named: readonly (readonly [number, string])[]): Log | null {
  const following = entriesFrom(state, start);
  if (named.length === 0) return following.length === 0 ? state : null;
  if (named.length > following.length) return null;
  let before = following[0]?.before ?? null;
  let isNew = false;
  let lastId = state.lastId;
  let previousId = idAtOrBefore(before);
  for (const [index, entry] of following.entries()) {
    const [id, value] = named[index] ?? [entry.id, entry.value];
    if (value !== entry.value || (entry.id !== null && entry.id !== id)) return null;
    if (id !== null && id <= previousId) return null;
    isNew ||= id !== entry.id;
    previousId = id ?? previousId;
    lastId = Math.max(lastId, id ?? lastId);
    before = state.intern(before, value, id);
  }
  return isNew ? { ...state, tail: before, lastId } : state;
}

function readFrom(state: Log, after: number, named: readonly (readonly [number, string])[]): Log | null {
  if ((named[0]?.[0] ?? Infinity) <= after) return null;
  let last: Tail | null = state.tail;
  while (last !== null && (last.id === null || last.id > after)) last = last.before;
  return withNamed(state, last?.length ?? 0, named);
}

function took(state: Log, { input, output }: HistoryOperation): Log | null {
  const { reader } = input as { reader: string };
  const { entries: named } = (output ?? { entries: [] }) as z.infer<typeof entries>;
  const cursor = state.cursors.get(reader) ?? 0;
  const next = withNamed(state, cursor, named);
  if (next === null || named.length === 0) return next;
  return { ...next, cursors: new Map(next.cursors).set(reader, cursor + named.length) };
}

/**
 * An append of unknown outcome took effect when a reader has had the value that it alone has written: before that
 * response, with the ID that it names. Otherwise it makes nothing possible, and is left out.
 */
function withShownAppends(operations: readonly HistoryOperation[]): readonly HistoryOperation[] {
  const appends = operations.filter(({ do: name }) => name === "append");
  const writers = Map.groupBy(appends, ({ input }) => (input as { value: string }).value);
  const shown = new Map<string, { readonly id: number; readonly to: number }>();
  for (const { output, to } of operations) {
    for (const [id, value] of ((output ?? {}) as Partial<z.infer<typeof entries>>).entries ?? []) {
      if (to < (shown.get(value)?.to ?? Infinity)) shown.set(value, { id, to });
    }
  }
  return operations.flatMap((one): HistoryOperation[] => {
    if (one.outcome === "ok" || one.do !== "append") return [one];
    const { value } = one.input as { value: string };
    const read = shown.get(value);
    if (read === undefined) return [];
    if (writers.get(value)?.length !== 1 || read.to < one.from) return [one];
    return [{ ...one, outcome: "ok", to: read.to, output: { id: read.id } }];
  });
}

export const logModel: CheckerModel<Log> = {
  name: "log",
  shape,
  initial: () => ({ tail: null, lastId: -1, cursors: new Map(), intern: interner() }),
  step(state, operation) {
    if (operation.do === "append") return appended(state, operation);
    if (operation.do === "subscribe") {
      const { reader, at } = operation.input as { reader: string; at: string };
      const cursor = at === "end" ? state.tail?.length ?? 0 : 0;
      if ((state.cursors.get(reader) ?? 0) === cursor) return state;
      return { ...state, cursors: new Map(state.cursors).set(reader, cursor) };
    }
    if (operation.output === null) return state;
    if (operation.do === "take") return took(state, operation);
    const { after } = operation.input as { after: number };
    return readFrom(state, after, (operation.output as z.infer<typeof entries>).entries);
  },
  key: ({ tail, cursors }) => JSON.stringify([tail?.key ?? 0, [...cursors].sort(([a], [b]) => (a < b ? -1 : 1))]),
  // A reader that was not answered has nothing, and asks again.
  mayMatter: ({ do: name }) => name === "append" || name === "subscribe",
  simplified: withShownAppends,
  witness({ do: name, input, output }) {
    if (name === "append") {
      const at = output?.["id"];
      return typeof at === "number" ? { at, kind: "change" } : null;
    }
    if (name === "subscribe") return null;
    const last = ((output ?? { entries: [] }) as z.infer<typeof entries>).entries.at(-1)?.[0];
    const at = last ?? (name === "read" ? (input as { after: number }).after : null);
    return at === null ? null : { at, kind: "observation" };
  },
  describe: ({ tail, cursors }) =>
    `${tail?.length ?? 0} entries, the last ${JSON.stringify(tail?.value ?? null)}; cursors ${
      [...cursors].map(([reader, at]) => `${reader}: ${at}`).join(", ") || "none"
    }`,
};
