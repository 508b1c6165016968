/**
 * The puts and gets of a campaign as operations on logs, for the checker: a second judge, which knows nothing of the
 * first.
 */
import { checkHistory, type HistoryVerdict } from "../../../checker/check_history.ts";
import type { HistoryOperation } from "../../../checker/operation.ts";
import type { At, History, Operation, Outcome } from "./history.ts";

/** A message, by all tries to put it: it is stored once, at some time from the first try to the first OK. */
interface Append {
  readonly from: At;
  readonly to: At;
  readonly outcome: Outcome;
  readonly id: number | null;
}

const model = "log";
/** The order that message IDs name is right, or a search soon shows that none is. */
const stepsMax = 200_000;

/** Whether each topic is one log, in one order that explains all puts and gets. Undecided is a failure, too. */
export function judgeLogs(history: History): HistoryVerdict & { readonly failures: readonly string[] } {
  const verdict = checkHistory(logOperations(history), { stepsMax });
  return { ...verdict, failures: [...verdict.violated, ...verdict.undecided].map(({ why }) => why) };
}

/**
 * Left out are topics of which messages were given up or lost, since their logs have gaps; readers whose state was lost
 * or restored, since they ask for what is deleted, or who do not know whether a seek was done; and gets that name no
 * place.
 */
export function logOperations({ operations, states, losses }: History): HistoryOperation[] {
  const lost = new Set(losses.map(({ topic }) => topic));
  for (const { topic, result } of operations) if ((result.missed ?? 0) > 0) lost.add(topic);
  const unsteady = new Set(states.map(({ client }) => client));
  // Its place may be another one than it names.
  for (const { client, do: what, result: { outcome } } of operations) {
    if (what === "seek" && outcome === "unknown") unsteady.add(client);
  }
  const whole = operations.filter(({ topic }) => !lost.has(topic));
  const reads = whole.filter((one) => one.do === "get" && !unsteady.has(one.client) && one.unordered !== true);
  return [...Map.groupBy(whole, ({ topic }) => topic)].flatMap(([topic, its]) => appendsOf(topic, its))
    .concat(reads.flatMap(readOf));
}

function appendsOf(topic: string, operations: readonly Operation[]): HistoryOperation[] {
  const appends = new Map<string, Append>();
  for (const { do: name, puts = [], invokedAt, returnedAt, result: { outcome, ids } } of operations) {
    if (name !== "put") continue;
    for (const [index, [message]] of puts.entries()) {
      const try_ = { from: invokedAt, to: outcome === "ok" ? returnedAt : Infinity, outcome, id: ids?.[index] ?? null };
      appends.set(message, merged(appends.get(message), try_));
    }
  }
  const seen = idsSeen(operations);
  return [...appends].flatMap(([value, { from, to, outcome, id: told }]) => {
    const id = told ?? seen.get(value) ?? null;
    if (id === null && outcome === "ok") return []; // its place in the log is not known, and no reader has had it
    const output = outcome === "ok" ? { id } : null;
    return [{
      model,
      client: `put of ${value}`,
      do: "append",
      keys: [topic],
      input: { value },
      from,
      to,
      outcome,
      output,
    }];
  });
}

function merged(before: Append | undefined, next: Append): Append {
  if (before === undefined) return next;
  const outcomes = [before.outcome, next.outcome];
  return {
    from: Math.min(before.from, next.from),
    to: Math.min(before.to, next.to),
    outcome: outcomes.includes("ok") ? "ok" : outcomes.includes("unknown") ? "unknown" : "fail",
    id: before.id ?? next.id,
  };
}

function idsSeen(operations: readonly Operation[]): Map<string, number> {
  return new Map(operations.flatMap(({ result: { got = [] } }) => got.map(([id, name]) => [name, id] as const)));
}

/**
 * A get is a read of what follows the place that it names; −1: of what the reader has subscribed to. The readers of a
 * topic have no part in its log.
 */
function readOf({ client, process, topic, last, invokedAt, returnedAt, result }: Operation): HistoryOperation[] {
  const { outcome, got = [], status } = result;
  if (outcome !== "ok" || last === undefined || last < 0 || (got.length === 0 && status !== "NO_MESSAGE")) return [];
  return [{
    ...{
      model,
      client: `${client} of ${topic} in ${process}, ${invokedAt}`,
      do: "read",
      keys: [topic],
      input: { after: last },
    },
    ...{ from: invokedAt, to: returnedAt, outcome, output: { entries: got.map(([id, name]) => [id, name]) } },
  }];
}
