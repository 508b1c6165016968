/** What an operator is told of a store, as failures with a row in the table of errors. */
import { BatonError } from "../../../errors.ts";
import type { StoreHooks } from "../store/topic_store.ts";

export function problemsOfStore(
  onProblem: (problem: BatonError) => void,
): Pick<StoreHooks, "warning" | "damage"> {
  return {
    warning: (sentence) => onProblem(new BatonError("STORE_FULL", sentence)),
    damage: (sentence) => onProblem(new BatonError("IO", `Damaged on the disk, and refused: ${sentence}`)),
  };
}
