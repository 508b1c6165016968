/** Runs many seeds of a world, one after the other, and sums up what happened. */
import type { RunOptions, RunOutcome, RunPlan, Simulation } from "./simulation.ts";

export interface FailedRun {
  readonly plan: RunPlan;
  readonly outcome: RunOutcome;
}

export interface SeedsReport {
  readonly world: string;
  readonly seeds: number;
  readonly realMs: number;
  readonly simulatedMs: number;
  readonly turns: number;
  readonly counts: ReadonlyMap<string, number>;
  readonly traces: readonly string[];
  readonly failures: readonly FailedRun[];
}

export interface RunSeedsOptions extends RunOptions {
  readonly from: number;
  readonly seeds: number;
  /** Ends with the first failure. */
  readonly untilFailure?: boolean;
  /** Runs each plan twice, and takes different traces for a failure. */
  readonly twice?: boolean;
}

export async function runSeeds(simulation: Simulation, options: RunSeedsOptions): Promise<SeedsReport> {
  const startMs = performance.now();
  const counts = new Map<string, number>();
  const failures: FailedRun[] = [];
  const traces: string[] = [];
  let simulatedMs = 0;
  let turns = 0;
  for (let seed = options.from; seed < options.from + options.seeds; seed++) {
    const plan = simulation.plan(seed);
    let outcome = await simulation.run(plan, options);
    if (options.twice === true && outcome.failure === null) {
      outcome = sameTrace(outcome, await simulation.run(plan, options));
    }
    simulatedMs += outcome.simulatedMs;
    turns += outcome.turns;
    traces.push(outcome.trace);
    for (const [what, times] of outcome.counts) counts.set(what, (counts.get(what) ?? 0) + times);
    if (outcome.failure !== null) failures.push({ plan, outcome });
    if (options.untilFailure === true && failures.length > 0) break;
  }
  const realMs = performance.now() - startMs;
  return { world: simulation.name, seeds: traces.length, realMs, simulatedMs, turns, counts, traces, failures };
}

/** A run that depends on something besides its plan has a second run with another trace. */
function sameTrace(first: RunOutcome, second: RunOutcome): RunOutcome {
  if (first.trace === second.trace) return first;
  const message = `the same plan had the trace ${first.trace}, then ${second.trace}`;
  return { ...second, failure: { kind: "not deterministic", message, atMs: 0 } };
}
