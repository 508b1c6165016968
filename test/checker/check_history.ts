/**
 * Judges a history: whether each object could have been one that does one operation after the other, each between its
 * call and its response (linearizability, Herlihy and Wing 1990). An object's operations are judged apart from those of
 * others; a transaction joins the objects that it is about. Takes arrays of operations: of a file, of a run against
 * real servers, of a simulation.
 */
import type { CheckerModel, HistoryOperation } from "./operation.ts";
import { barrierModel } from "./models/barrier_model.ts";
import { logModel } from "./models/log_model.ts";
import { lockModel, semaphoreModel } from "./models/permit_model.ts";
import { znodeModel } from "./models/znode_model.ts";
import { searchOrder, type SearchResult } from "./search.ts";
import { witnessProves } from "./witness.ts";

// deno-lint-ignore no-explicit-any -- each model has states of its own
type AnyModel = CheckerModel<any>;

export const checkerModels: ReadonlyMap<string, AnyModel> = new Map<string, AnyModel>(
  [znodeModel, lockModel, semaphoreModel, barrierModel, logModel].map((model) => [model.name, model]),
);

export interface PartitionVerdict {
  readonly model: string;
  readonly keys: readonly string[];
  readonly operations: number;
  /** Of these, operations without a known outcome. */
  readonly unknown: number;
  readonly verdict: SearchResult["verdict"];
  readonly by: "witness" | "search";
  readonly steps: number;
  /** What is wrong, or why nothing was decided; empty when linearizable. */
  readonly why: string;
}

export interface HistoryVerdict {
  readonly partitions: readonly PartitionVerdict[];
  readonly violated: readonly PartitionVerdict[];
  /** Never to be taken for linearizable. */
  readonly undecided: readonly PartitionVerdict[];
}

export interface CheckOptions {
  /** Steps of the model for each partition; 5,000,000 when left out. */
  readonly stepsMax?: number;
  /** Leaves out the witness pass, so that all is searched for. */
  readonly withoutWitness?: boolean;
}

/**
 * Throws for an operation that is none: of an unknown model, that ends before it begins, or of a client with two at the
 * same time.
 */
export function checkHistory(operations: readonly HistoryOperation[], options: CheckOptions = {}): HistoryVerdict {
  demandSequentialClients(operations);
  const partitions = partitionsOf(operations).map((partition) => checkPartition(partition, options));
  return {
    partitions,
    violated: partitions.filter(({ verdict }) => verdict === "violated"),
    undecided: partitions.filter(({ verdict }) => verdict === "undecided"),
  };
}

/** Throws unless every partition is linearizable. */
export function demandLinearizable(
  operations: readonly HistoryOperation[],
  options: CheckOptions = {},
): HistoryVerdict {
  const verdict = checkHistory(operations, options);
  const wrong = [...verdict.violated, ...verdict.undecided];
  if (wrong.length > 0) throw new Error(wrong.map(({ why }) => why).join("\n"));
  return verdict;
}

export function modelOf(name: string): AnyModel {
  const model = checkerModels.get(name);
  if (model === undefined) throw new Error(`model "${name}": expected one of ${[...checkerModels.keys()].join(", ")}`);
  return model;
}

function checkPartition(partition: readonly HistoryOperation[], options: CheckOptions): PartitionVerdict {
  const [first] = partition;
  const model = modelOf(first?.model ?? "");
  const all = partition.filter((one) => one.outcome === "ok" || (one.outcome === "unknown" && model.mayMatter(one)));
  const judged = model.simplified?.(all) ?? all;
  const about = {
    model: model.name,
    keys: [...new Set(partition.flatMap(({ keys }) => keys))].sort(),
    operations: partition.length,
    unknown: partition.filter(({ outcome }) => outcome === "unknown").length,
  };
  if (options.withoutWitness !== true && witnessProves(model, judged)) {
    return { ...about, verdict: "linearizable", by: "witness", steps: 0, why: "" };
  }
  const result = searchOrder(model, judged, options.stepsMax ?? 5_000_000);
  return { ...about, verdict: result.verdict, by: "search", steps: result.steps, why: reasonOf(about, result) };
}

/** Operations that share a model and, by way of others, a key. */
function partitionsOf(operations: readonly HistoryOperation[]): HistoryOperation[][] {
  const parent = new Map<string, string>();
  const rootOf = (name: string): string => {
    const above = parent.get(name) ?? name;
    if (above === name) return name;
    const root = rootOf(above);
    parent.set(name, root);
    return root;
  };
  const nameOf = ({ model }: HistoryOperation, key: string) => `${model}\0${key}`;
  for (const operation of operations) {
    if (operation.keys.length === 0) throw new Error(`${operationText(operation)}: expected at least one key`);
    const [first = "", ...others] = operation.keys;
    for (const other of others) parent.set(rootOf(nameOf(operation, other)), rootOf(nameOf(operation, first)));
  }
  return [...Map.groupBy(operations, (operation) => rootOf(nameOf(operation, operation.keys[0] ?? ""))).values()];
}

function demandSequentialClients(operations: readonly HistoryOperation[]): void {
  for (const [client, its] of Map.groupBy(operations, ({ client }) => client)) {
    const ordered = its.toSorted((a, b) => a.from - b.from || a.to - b.to);
    for (const [index, one] of ordered.entries()) {
      if (!(one.from <= one.to)) throw new Error(`${operationText(one)}: it ends before it begins`);
      if (one.outcome === "ok" && one.output === null) {
        throw new Error(`${operationText(one)}: a response without output`);
      }
      const before = ordered[index - 1];
      if (before === undefined || before.to <= one.from || before.outcome === "fail") continue;
      if (before.outcome === "unknown" && !modelOf(before.model).mayMatter(before)) continue;
      throw new Error(
        `client "${client}" has two operations at the same time: ${operationText(before)} and ${operationText(one)}`,
      );
    }
  }
}

/** States and operations in flight that a message has at most. */
const shownMax = 8;

function reasonOf({ model, keys }: { model: string; keys: readonly string[] }, result: SearchResult): string {
  const what = `${model} ${keys.join(", ")}`;
  if (result.verdict === "undecided") return `${what}: undecided after ${result.steps} steps`;
  if (result.impossible === undefined) return "";
  const some = (lines: readonly string[]) => [
    ...lines.slice(0, shownMax).map((line) => `    ${line}`),
    ...(lines.length > shownMax ? [`    and ${lines.length - shownMax} others`] : []),
  ];
  return [
    `${what}: not linearizable. No order of the operations explains this response:`,
    `    ${operationText(result.impossible)}`,
    "  The states that were possible:",
    ...some(result.states ?? []),
    "  Other operations in flight, or of unknown outcome:",
    ...some((result.inFlight ?? []).map(operationText)),
  ].join("\n");
}

export function operationText({ client, do: name, keys, input, output, outcome, from, to }: HistoryOperation): string {
  const response = outcome === "ok" ? JSON.stringify(output) : outcome;
  return `${client}: ${name} ${keys.join(", ")} ${JSON.stringify(input)} → ${response} (${from.toFixed(1)} to ${
    to === Infinity ? "no response" : to.toFixed(1)
  } ms)`;
}
