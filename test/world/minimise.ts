/**
 * Makes the list of faults of a failing run shorter, as long as the same kind of failure remains. A. Zeller, R.
 * Hildebrandt, "Simplifying and isolating failure-inducing input", 2002.
 */
import type { Fault } from "./fault_plan.ts";
import type { RunPlan, Simulation } from "./simulation.ts";

/** The runs that a search may take. */
const runsMax = 400;

export async function minimise(simulation: Simulation, plan: RunPlan, kind: string): Promise<RunPlan> {
  let runs = 0;
  const fails = async (faults: readonly Fault[]): Promise<boolean> => {
    if (runs++ >= runsMax) return false;
    return (await simulation.run({ ...plan, faults })).failure?.kind === kind;
  };
  let faults = plan.faults;
  for (let parts = 2; faults.length > 0 && runs < runsMax;) {
    const size = Math.ceil(faults.length / parts);
    let isShorter = false;
    for (let start = 0; start < faults.length; start += size) {
      const rest = [...faults.slice(0, start), ...faults.slice(start + size)];
      if (!await fails(rest)) continue;
      faults = rest;
      parts = Math.max(2, parts - 1);
      isShorter = true;
      break;
    }
    if (isShorter) continue;
    if (size === 1) break;
    parts = Math.min(faults.length, parts * 2);
  }
  return { ...plan, faults };
}
