/** One run of a simulated world: what it is made from, and what came out. */
import type { Fault } from "./fault_plan.ts";
import type { SimFailure } from "./sim_world.ts";

/** Everything that a run is made from. The same one gives the same run. */
export interface RunPlan {
  readonly world: string;
  readonly seed: number;
  /** Settings of the world that the seed chose; a file may have others. */
  readonly options: Readonly<Record<string, number | string | boolean | readonly (number | string)[]>>;
  readonly faults: readonly Fault[];
}

export interface RunOutcome {
  readonly trace: string;
  readonly failure: SimFailure | null;
  readonly turns: number;
  readonly simulatedMs: number;
  /** Effects of faults, and situations that were reached, by name. */
  readonly counts: ReadonlyMap<string, number>;
}

export interface RunOptions {
  /** Receives a line for each thing that happens. */
  readonly log?: ((line: string) => void) | undefined;
  /** Ends the run at this time, in simulated milliseconds. */
  readonly untilMs?: number | undefined;
}

/** A kind of world: how a plan is drawn from a seed, and how it runs. */
export interface Simulation {
  readonly name: string;
  plan(seed: number): RunPlan;
  run(plan: RunPlan, options?: RunOptions): Promise<RunOutcome>;
  /** Situations that must be reached by some seeds of a gate. */
  readonly marks: readonly string[];
  /** The number of seeds of a gate. */
  readonly gateSeeds: number;
  /** The first of them; 1 when left out. */
  readonly gateFrom?: number;
  /** The seeds whose traces the gate compares on both runtimes; those from 1 to 4 when left out. */
  readonly traceSeeds?: { readonly from: number; readonly seeds: number };
}
