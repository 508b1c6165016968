/**
 * An order that the service itself names: its zxids, versions, tokens and message IDs. The order is made from them and
 * then verified, by the model and by the clock, so that an error here cannot make a wrong history right. Costs n log n.
 */
import type { CheckerModel, HistoryOperation, Witness } from "./operation.ts";

interface Placed extends Witness {
  readonly operation: HistoryOperation;
  /** Observations: the lowest place that the clock allows. */
  slot: number;
}

/**
 * Whether the order that the responses name explains all of them. False says nothing: then the order is searched for.
 */
export function witnessProves<State>(model: CheckerModel<State>, operations: readonly HistoryOperation[]): boolean {
  const placed: Placed[] = [];
  for (const operation of operations) {
    // An operation of unknown outcome need not have been executed.
    if (operation.outcome !== "ok") continue;
    const witness = model.witness?.(operation) ?? null;
    if (witness === null) return false;
    placed.push({ ...witness, operation, slot: witness.at });
  }
  raiseSlots(placed, model);
  const order = placed.sort((a, b) =>
    a.slot - b.slot || (a.kind === b.kind ? a.operation.from - b.operation.from : a.kind === "change" ? -1 : 1)
  ).map(({ operation }) => operation);
  return isExplained(model, order) && isInTime(model, order);
}

/** An observation is made after all operations that had ended when it began. */
function raiseSlots(placed: readonly Placed[], model: Pick<CheckerModel, "isStale">): void {
  const byCall = [...placed].sort((a, b) => a.operation.from - b.operation.from);
  const byResponse = [...placed].sort((a, b) => a.operation.to - b.operation.to);
  const ofClient = new Map<string, number>();
  let ended = 0;
  let highest = -Infinity;
  for (const one of byCall) {
    const { operation } = one;
    for (; (byResponse[ended]?.operation.to ?? Infinity) < operation.from; ended++) {
      highest = Math.max(highest, byResponse[ended]?.slot ?? highest);
    }
    if (one.kind === "observation") {
      const bound = model.isStale?.(operation) === true ? ofClient.get(operation.client) ?? -Infinity : highest;
      one.slot = Math.max(one.slot, bound);
    }
    ofClient.set(operation.client, Math.max(ofClient.get(operation.client) ?? -Infinity, one.slot));
  }
}

function isExplained<State>(model: CheckerModel<State>, order: readonly HistoryOperation[]): boolean {
  let state = model.initial();
  for (const operation of order) {
    const next = model.step(state, operation);
    if (next === null) return false;
    state = next;
  }
  return true;
}

/** No operation stands before one that had ended when it was called. */
function isInTime(model: Pick<CheckerModel, "isStale">, order: readonly HistoryOperation[]): boolean {
  let latestCall = -Infinity;
  const lastOf = new Map<string, HistoryOperation>();
  for (const operation of order) {
    if (operation.to < latestCall) return false;
    if (model.isStale?.(operation) !== true) latestCall = Math.max(latestCall, operation.from);
    const before = lastOf.get(operation.client);
    if (before !== undefined && operation.from < before.from) return false;
    lastOf.set(operation.client, operation);
  }
  return true;
}
