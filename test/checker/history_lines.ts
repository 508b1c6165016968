/**
 * Histories as lines of JSON: one line for each call, one for each response, and one for each event that is no
 * operation.
 *
 *     {"n":1,"at":12.5,"client":"c1","session":"0x10","model":"znode","do":"set","key":"/a",
 *      "input":{"data":"x","version":3}}
 *     {"n":1,"at":13.1,"outcome":"ok","output":{"version":4,"zxid":17}} {"at":14,"state":"server 1 killed"}
 *
 * `at` is in milliseconds of one monotonic clock, `key` a list in a transaction. An operation without a response is of
 * unknown outcome.
 */
import { z } from "zod";
import { modelOf } from "./check_history.ts";
import type { HistoryOperation } from "./operation.ts";

const n = z.number().int();
const at = z.number();
const fields = z.record(z.string(), z.unknown());
const line = z.union([
  z.strictObject({
    n,
    at,
    client: z.string(),
    session: z.string().optional(),
    model: z.string(),
    do: z.string(),
    key: z.union([z.string(), z.array(z.string()).min(1)]),
    input: fields,
  }),
  z.strictObject({ n, at, outcome: z.enum(["ok", "fail", "unknown"]), output: fields.optional() }),
  z.strictObject({ at, state: z.string() }),
]);

/** `states` are the events of a run that are no operations, such as faults. */
export function historyLines(
  operations: readonly HistoryOperation[],
  states: readonly { readonly at: number; readonly state: string }[] = [],
): string {
  const events: { readonly at: number; readonly isCall: boolean; readonly line: object }[] = [];
  for (
    const [index, { keys, from, to, outcome, output, model, client, session, input, ...rest }] of operations.entries()
  ) {
    const key = keys.length === 1 ? keys[0] : keys;
    const call = { n: index + 1, at: from, client, session, model, do: rest.do, key, input };
    events.push({ at: from, isCall: true, line: call });
    if (to === Infinity) continue;
    events.push({ at: to, isCall: false, line: { n: index + 1, at: to, outcome, output: output ?? undefined } });
  }
  for (const { at, state } of states) events.push({ at, isCall: false, line: { at, state } });
  events.sort((a, b) => a.at - b.at || Number(b.isCall) - Number(a.isCall));
  return events.map(({ line }) => `${JSON.stringify(line)}\n`).join("");
}

/**
 * Throws, with the number of the line, for one that is none. A last line without a newline was cut off, and is passed
 * over.
 */
export function readHistoryLines(text: string): HistoryOperation[] {
  const operations = new Map<number, HistoryOperation>();
  for (const [index, each] of text.split("\n").slice(0, -1).entries()) {
    if (each === "") continue;
    try {
      take(each, operations);
    } catch (thrown) {
      throw new Error(`line ${index + 1}: ${thrown instanceof Error ? thrown.message : thrown}`);
    }
  }
  for (const operation of operations.values()) demandShape(operation);
  return [...operations.values()];
}

function take(text: string, operations: Map<number, HistoryOperation>): void {
  const parsed = line.safeParse(JSON.parse(text));
  if (!parsed.success) throw new Error(`${text.slice(0, 200)}: expected a call, a response or a state`);
  const event = parsed.data;
  if ("state" in event) return;
  if ("do" in event) {
    if (operations.has(event.n)) throw new Error(`operation ${event.n} is called twice`);
    const { n: number, at: from, key, session, ...rest } = event;
    const keys = typeof key === "string" ? [key] : key;
    const about = { ...rest, keys, ...(session === undefined ? {} : { session }) };
    operations.set(number, { ...about, from, to: Infinity, outcome: "unknown", output: null });
    return;
  }
  const called = operations.get(event.n);
  if (called === undefined || called.to !== Infinity) {
    throw new Error(`a response of operation ${event.n}, which is not in flight`);
  }
  operations.set(event.n, { ...called, to: event.at, outcome: event.outcome, output: event.output ?? null });
}

function demandShape(operation: HistoryOperation): void {
  const { do: name, input, output } = operation;
  const parsed = modelOf(operation.model).shape.safeParse({ do: name, input, output });
  if (parsed.success) return;
  const [issue] = parsed.error.issues;
  throw new Error(
    `${operation.model} ${name} ${JSON.stringify({ input, output })}: ${issue?.path.join(".")} ${issue?.message ?? ""}`,
  );
}
