/**
 * The definition of linearizability, tried in all orders: what checker_test.ts compares the search with. For few
 * operations only.
 */
import { modelOf } from "./check_history.ts";
import type { HistoryOperation } from "./operation.ts";

/** All operations together, whatever their keys; `model` is that of all of them. */
export function bruteForce(operations: readonly HistoryOperation[]): boolean {
  const [first] = operations;
  if (first === undefined) return true;
  const model = modelOf(first.model);
  const isBefore = (a: HistoryOperation, b: HistoryOperation) =>
    a.client === b.client ? a.from < b.from : model.isStale?.(b) !== true && a.to < b.from;
  const place = (left: readonly HistoryOperation[], state: unknown): boolean => {
    if (left.every(({ outcome }) => outcome !== "ok")) return true;
    return left.some((one) => {
      if (left.some((other) => other !== one && isBefore(other, one))) return false;
      const rest = left.filter((other) => other !== one);
      if (one.outcome === "fail") return place(rest, state);
      const next = model.step(state, one);
      return (one.outcome === "unknown" && place(rest, state)) || (next !== null && place(rest, next));
    });
  };
  return place(operations, model.initial());
}
